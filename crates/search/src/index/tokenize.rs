//! Our analyzers as the inverted index calls them.

use crate::analysis::{Analyzer, StandardStream};
use crate::definition::IndexDefinition;
use crate::index::schema::Physical;
use crate::limits;
use std::sync::Arc;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer, TokenizerManager};

/// The tokenizers of all searchable fields, by the names of their physical fields.
pub(super) fn manager(definition: &IndexDefinition, physical: &Physical) -> TokenizerManager {
    let manager = TokenizerManager::default();
    for leaf in physical.leaves.values().filter(|it| it.terms.is_some()) {
        let analyzer = definition.index_analyzer(&leaf.leaf);
        let plain = analyzer.is_plain_standard();
        manager.register(&format!("s{}", leaf.number), FieldTokenizer { analyzer, plain });
    }
    manager
}

#[derive(Clone)]
struct FieldTokenizer {
    analyzer: Arc<Analyzer>,
    plain: bool,
}

impl Tokenizer for FieldTokenizer {
    type TokenStream<'a> = FieldStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> FieldStream<'a> {
        if self.plain {
            return FieldStream::Standard(StandardStream::new(text));
        }
        let mut tokens = self.analyzer.analyze(text);
        tokens.truncate(limits::TOKENS_MAX);
        let tokens = tokens.into_iter().filter(|it| it.text.len() <= limits::TERM_BYTES_MAX);
        let tokens: Vec<Token> = tokens
            .map(|it| Token {
                offset_from: it.start,
                offset_to: it.end,
                position: it.position,
                text: it.text,
                position_length: it.length,
            })
            .collect();
        FieldStream::Listed { tokens, next: 0 }
    }
}

enum FieldStream<'a> {
    Standard(StandardStream<'a>),
    Listed { tokens: Vec<Token>, next: usize },
}

impl TokenStream for FieldStream<'_> {
    fn advance(&mut self) -> bool {
        match self {
            FieldStream::Standard(stream) => stream.advance(),
            FieldStream::Listed { tokens, next } => {
                *next += 1;
                *next <= tokens.len()
            }
        }
    }

    fn token(&self) -> &Token {
        match self {
            FieldStream::Standard(stream) => stream.token(),
            FieldStream::Listed { tokens, next } => &tokens[*next - 1],
        }
    }

    fn token_mut(&mut self) -> &mut Token {
        match self {
            FieldStream::Standard(stream) => stream.token_mut(),
            FieldStream::Listed { tokens, next } => &mut tokens[*next - 1],
        }
    }
}
