//! Which fields a path may name at a place in a filter: those of the document, and those of the elements that variables
//! stand for.

use super::lexer::{Lexeme, Lexer};
use super::tree::PathRef;
use crate::definition::{EdmType, Field, IndexDefinition};
use crate::error::{Result, SearchError};

/// A variable and the collection whose elements it stands for.
struct Variable {
    name: String,
    full: String,
}

/// The variables at a place.
pub(crate) struct Scope<'a> {
    definition: &'a IndexDefinition,
    variables: Vec<Variable>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(definition: &'a IndexDefinition) -> Scope<'a> {
        Scope { definition, variables: Vec::new() }
    }

    pub(crate) fn definition(&self) -> &'a IndexDefinition {
        self.definition
    }

    pub(crate) fn in_lambda(&self) -> bool {
        !self.variables.is_empty()
    }

    /// Adds a variable for the elements of a collection.
    pub(crate) fn enter(&mut self, name: &str, full: &str) -> Result<()> {
        if self.variables.iter().any(|it| it.name == name) {
            return Err(SearchError::invalid(format!("the variable '{name}' is used twice")));
        }
        self.variables.push(Variable { name: name.to_owned(), full: full.to_owned() });
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.variables.pop();
    }

    /// Reads names joined by slashes, up to `any` or `all`, whose name is returned too.
    pub(crate) fn read_path(&self, lexer: &mut Lexer<'_>) -> Result<(PathRef, Option<String>)> {
        let mut names = Vec::new();
        let mut lambda = None;
        loop {
            match lexer.current.clone() {
                Lexeme::Name(name) => {
                    lexer.advance()?;
                    let is_lambda =
                        (name == "any" || name == "all") && lexer.current == Lexeme::Open;
                    if is_lambda && !names.is_empty() {
                        lambda = Some(name);
                        break;
                    }
                    names.push(name);
                }
                _ => return Err(lexer.unexpected("the name of a field")),
            }
            if !lexer.take(&Lexeme::Slash)? {
                break;
            }
        }
        Ok((self.resolve(names)?, lambda))
    }

    /// Finds what names stand for.
    pub(crate) fn resolve(&self, mut names: Vec<String>) -> Result<PathRef> {
        let variable = self.variables.iter().rev().find(|it| Some(&it.name) == names.first());
        let Some(variable) = variable else {
            let full = names.join("/");
            let field = self.field(&full)?;
            self.check_collections(&names, "")?;
            return Ok(reference(None, names, full, field));
        };
        names.remove(0);
        let collection = self.field(&variable.full)?;
        let name = Some(variable.name.clone());
        if names.is_empty() {
            let mut path = reference(name, names, variable.full.clone(), collection);
            path.collection = false;
            return Ok(path);
        }
        self.check_collections(&names, &variable.full)?;
        let full = format!("{}/{}", variable.full, names.join("/"));
        let field = self.field(&full)?;
        Ok(reference(name, names, full, field))
    }

    fn field(&self, full: &str) -> Result<&'a Field> {
        self.definition.field(full).ok_or_else(|| {
            SearchError::invalid(format!(
                "Could not find a property named '{full}' on type 'search.document'."
            ))
        })
    }

    /// A path may go through a collection only by `any` or `all`.
    fn check_collections(&self, names: &[String], prefix: &str) -> Result<()> {
        let mut full = prefix.to_owned();
        for name in &names[..names.len().saturating_sub(1)] {
            if !full.is_empty() {
                full.push('/');
            }
            full.push_str(name);
            if self.field(&full)?.collection {
                return Err(SearchError::invalid(format!(
                    "'{full}' is a collection: its fields are reached by 'any' or 'all'"
                )));
            }
        }
        Ok(())
    }

    /// Refuses fields that may not be filtered by.
    pub(crate) fn check_filterable(&self, path: &PathRef) -> Result<()> {
        let leaf = self.definition.leaf(&path.full);
        if path.kind != EdmType::Complex && !leaf.is_some_and(|it| it.filterable) {
            return Err(SearchError::invalid(format!(
                "'{}' is not a filterable field. Only filterable fields can be used in filter expressions.",
                path.full
            )));
        }
        Ok(())
    }
}

fn reference(variable: Option<String>, names: Vec<String>, full: String, field: &Field) -> PathRef {
    PathRef { variable, names, full, kind: field.kind, collection: field.collection }
}
