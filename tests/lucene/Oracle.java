// Answers requests with Lucene: tokens of analyzers, parsed queries, and ranked documents with their scores. It reads one
// request a line from standard input, its parts separated by tabs, and prints one line for each.
//
//   D id title body            adds a document to the corpus
//   T analyzer text            tokens: text@position[start-end]
//   Q simple|full any|all text the query on the field `f`, as Lucene prints it
//   R simple|full any|all text the ten best documents of the corpus with their scores

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.lucene.analysis.*;
import org.apache.lucene.analysis.core.*;
import org.apache.lucene.analysis.miscellaneous.ASCIIFoldingFilter;
import org.apache.lucene.analysis.pattern.PatternTokenizer;
import org.apache.lucene.analysis.standard.*;
import org.apache.lucene.analysis.tokenattributes.*;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.queryparser.classic.*;
import org.apache.lucene.queryparser.simple.SimpleQueryParser;
import org.apache.lucene.search.*;
import org.apache.lucene.search.similarity.LegacyBM25Similarity;
import org.apache.lucene.store.ByteBuffersDirectory;

public class Oracle {
    static final String PACKAGE = "org.apache.lucene.analysis.";
    static final Map<String, String> LANGUAGES = new HashMap<>();

    static {
        String[] names = {
            "ar ar.Arabic", "hy hy.Armenian", "eu eu.Basque", "bg bg.Bulgarian", "ca ca.Catalan", "cs cz.Czech",
            "da da.Danish", "nl nl.Dutch", "en en.English", "fi fi.Finnish", "fr fr.French", "gl gl.Galician",
            "de de.German", "el el.Greek", "hi hi.Hindi", "hu hu.Hungarian", "id id.Indonesian", "ga ga.Irish",
            "it it.Italian", "lv lv.Latvian", "no no.Norwegian", "fa fa.Persian", "pt-BR br.Brazilian",
            "pt-PT pt.Portuguese", "ro ro.Romanian", "ru ru.Russian", "es es.Spanish", "sv sv.Swedish", "th th.Thai",
            "tr tr.Turkish", "pl pl.Polish", "zh-Hans cn.smart.SmartChinese", "zh-Hant cn.smart.SmartChinese",
            "ja ja.Japanese", "ko ko.Korean",
        };
        for (String name : names) {
            LANGUAGES.put(name.split(" ")[0] + ".lucene", PACKAGE + name.split(" ")[1] + "Analyzer");
        }
    }

    static Analyzer analyzer(String name) throws Exception {
        switch (name) {
            case "standard.lucene":
                return new StandardAnalyzer();
            case "keyword":
                return new KeywordAnalyzer();
            case "simple":
                return new SimpleAnalyzer();
            case "stop":
                return new StopAnalyzer(org.apache.lucene.analysis.en.EnglishAnalyzer.ENGLISH_STOP_WORDS_SET);
            case "whitespace":
                return new WhitespaceAnalyzer();
            case "standardasciifolding.lucene":
                return chain(new StandardTokenizer(), true);
            case "pattern":
                return chain(new PatternTokenizer(java.util.regex.Pattern.compile("\\W+"), -1), false);
            default:
                return (Analyzer) Class.forName(LANGUAGES.get(name)).getConstructor().newInstance();
        }
    }

    static Analyzer chain(Tokenizer tokenizer, boolean fold) {
        return new Analyzer() {
            @Override
            protected TokenStreamComponents createComponents(String field) {
                TokenStream stream = new org.apache.lucene.analysis.LowerCaseFilter(tokenizer);
                return new TokenStreamComponents(tokenizer, fold ? new ASCIIFoldingFilter(stream) : stream);
            }
        };
    }

    static String tokens(String name, String text) throws Exception {
        StringBuilder out = new StringBuilder();
        try (Analyzer analyzer = analyzer(name); TokenStream stream = analyzer.tokenStream("f", text)) {
            CharTermAttribute term = stream.addAttribute(CharTermAttribute.class);
            OffsetAttribute offset = stream.addAttribute(OffsetAttribute.class);
            PositionIncrementAttribute step = stream.addAttribute(PositionIncrementAttribute.class);
            stream.reset();
            int position = -1;
            while (stream.incrementToken()) {
                position += step.getPositionIncrement();
                out.append(out.length() == 0 ? "" : " ").append(term).append('@').append(position);
                out.append('[').append(offset.startOffset()).append('-').append(offset.endOffset()).append(']');
            }
        }
        return out.toString();
    }

    static Query parse(String kind, String mode, String text, String[] fields) throws Exception {
        Analyzer analyzer = new StandardAnalyzer();
        boolean all = mode.equals("all");
        if (kind.equals("simple")) {
            Map<String, Float> weights = new LinkedHashMap<>();
            for (String field : fields) {
                weights.put(field, 1f);
            }
            int flags = SimpleQueryParser.AND_OPERATOR | SimpleQueryParser.ESCAPE_OPERATOR | SimpleQueryParser.NOT_OPERATOR
                | SimpleQueryParser.OR_OPERATOR | SimpleQueryParser.PHRASE_OPERATOR | SimpleQueryParser.PRECEDENCE_OPERATORS
                | SimpleQueryParser.PREFIX_OPERATOR | SimpleQueryParser.WHITESPACE_OPERATOR;
            SimpleQueryParser parser = new SimpleQueryParser(analyzer, weights, flags);
            parser.setDefaultOperator(all ? BooleanClause.Occur.MUST : BooleanClause.Occur.SHOULD);
            return parser.parse(text);
        }
        QueryParser parser =
            fields.length == 1 ? new QueryParser(fields[0], analyzer) : new MultiFieldQueryParser(fields, analyzer);
        parser.setSplitOnWhitespace(true);
        parser.setDefaultOperator(all ? QueryParser.Operator.AND : QueryParser.Operator.OR);
        return parser.parse(text);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer());
        config.setSimilarity(new LegacyBM25Similarity());
        IndexWriter writer = new IndexWriter(new ByteBuffersDirectory(), config);
        IndexSearcher searcher = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            String answer;
            try {
                switch (parts[0]) {
                    case "D":
                        Document document = new Document();
                        document.add(new StringField("id", parts[1], Field.Store.YES));
                        document.add(new TextField("title", parts[2], Field.Store.NO));
                        document.add(new TextField("body", parts[3], Field.Store.NO));
                        writer.addDocument(document);
                        answer = "";
                        break;
                    case "T":
                        answer = tokens(parts[1], parts[2]);
                        break;
                    case "Q":
                        answer = String.valueOf(parse(parts[1], parts[2], parts[3], new String[] {"f"}));
                        break;
                    default:
                        if (searcher == null) {
                            writer.forceMerge(1);
                            searcher = new IndexSearcher(DirectoryReader.open(writer));
                            searcher.setSimilarity(new LegacyBM25Similarity());
                        }
                        Query query = parse(parts[1], parts[2], parts[3], new String[] {"body", "title"});
                        StringBuilder found = new StringBuilder();
                        TopDocs top = query == null ? null : searcher.search(query, 10);
                        for (ScoreDoc hit : top == null ? new ScoreDoc[0] : top.scoreDocs) {
                            found.append(found.length() == 0 ? "" : " ").append(searcher.doc(hit.doc).get("id"));
                            found.append(String.format(Locale.ROOT, "=%.3f", hit.score));
                        }
                        answer = found.toString();
                }
            } catch (ParseException error) {
                answer = "ERROR";
            }
            out.println(answer.replace("\n", " "));
        }
    }
}
