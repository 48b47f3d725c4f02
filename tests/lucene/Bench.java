// Measures Lucene on the corpus and the queries that the benchmark of the search engine has written: first indexing by two
// threads, twice, then each kind of query by one thread. Prints a line for each: kind, rate, p50 and p99 in microseconds.

import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.queryparser.simple.SimpleQueryParser;
import org.apache.lucene.search.*;
import org.apache.lucene.store.*;
import org.apache.lucene.util.BytesRef;

public class Bench {
    static final java.lang.management.ThreadMXBean THREADS = java.lang.management.ManagementFactory.getThreadMXBean();

    static void index(IndexWriter writer, List<String> lines, int thread) throws Exception {
        for (int at = thread; at < lines.size(); at += 2) {
            String line = lines.get(at);
            String[] parts = line.split("\t");
            Document document = new Document();
            document.add(new StringField("id", parts[0], Field.Store.NO));
            document.add(new TextField("title", parts[1], Field.Store.NO));
            document.add(new TextField("body", parts[2], Field.Store.NO));
            double price = Double.parseDouble(parts[3]);
            document.add(new DoublePoint("price", price));
            document.add(new DoubleDocValuesField("price", price));
            document.add(new SortedDocValuesField("category", new BytesRef(parts[4])));
            document.add(new StringField("category", parts[4], Field.Store.NO));
            document.add(new StoredField("source", line));
            writer.updateDocument(new Term("id", parts[0]), document);
        }
    }

    static double indexAll(IndexWriter writer, List<String> lines) throws Exception {
        long start = System.nanoTime();
        ExecutorService threads = Executors.newFixedThreadPool(2);
        List<Future<?>> done = new ArrayList<>();
        for (int thread = 0; thread < 2; thread++) {
            int number = thread;
            done.add(threads.submit(() -> {
                index(writer, lines, number);
                return null;
            }));
        }
        for (Future<?> future : done) {
            future.get();
        }
        threads.shutdown();
        writer.commit();
        return lines.size() / ((System.nanoTime() - start) / 1e9);
    }

    static long ask(IndexSearcher searcher, StandardAnalyzer analyzer, String[] parts) throws Exception {
        String kind = parts[0];
        Map<String, Float> fields = new LinkedHashMap<>();
        fields.put("body", 1f);
        fields.put("title", 1f);
        SimpleQueryParser parser = new SimpleQueryParser(analyzer, fields);
        boolean all = kind.equals("and-count");
        parser.setDefaultOperator(all ? BooleanClause.Occur.MUST : BooleanClause.Occur.SHOULD);
        Query query = parser.parse(parts[1]);
        if (kind.equals("term-range-count")) {
            double low = Double.parseDouble(parts[2]), high = Math.nextDown(Double.parseDouble(parts[3]));
            query = new BooleanQuery.Builder().add(query, BooleanClause.Occur.MUST)
                .add(DoublePoint.newRangeQuery("price", low, high), BooleanClause.Occur.FILTER).build();
        }
        TopDocs top;
        long extra = 0;
        if (kind.equals("order-price")) {
            top = searcher.search(query, 10, new Sort(new SortField("price", SortField.Type.DOUBLE)));
        } else if (kind.equals("term-facets")) {
            TopScoreDocCollector best = TopScoreDocCollector.create(10, Integer.MAX_VALUE);
            Facets facets = new Facets();
            searcher.search(query, MultiCollector.wrap(best, facets));
            top = best.topDocs();
            extra = facets.total();
        } else if (kind.endsWith("count")) {
            TopScoreDocCollector best = TopScoreDocCollector.create(10, Integer.MAX_VALUE);
            searcher.search(query, best);
            top = best.topDocs();
            extra = top.totalHits.value;
        } else {
            top = searcher.search(query, 10);
        }
        for (ScoreDoc hit : top.scoreDocs) {
            extra += searcher.doc(hit.doc).get("source").length();
        }
        return extra;
    }

    /** Counts the values of one field, as the engine's facets do. */
    static class Facets extends SimpleCollector {
        final Map<String, Long> counts = new HashMap<>();
        SortedDocValues values;
        long[] ords;

        @Override
        protected void doSetNextReader(LeafReaderContext context) throws java.io.IOException {
            flush();
            values = DocValues.getSorted(context.reader(), "category");
            ords = new long[values.getValueCount()];
        }

        @Override
        public void collect(int doc) throws java.io.IOException {
            if (values.advanceExact(doc)) {
                ords[values.ordValue()]++;
            }
        }

        @Override
        public ScoreMode scoreMode() {
            return ScoreMode.COMPLETE_NO_SCORES;
        }

        void flush() throws java.io.IOException {
            for (int ord = 0; values != null && ord < ords.length; ord++) {
                if (ords[ord] > 0) {
                    counts.merge(values.lookupOrd(ord).utf8ToString(), ords[ord], Long::sum);
                }
            }
        }

        long total() throws java.io.IOException {
            flush();
            return counts.size();
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Paths.get(arguments[0]);
        long nanos = Long.parseLong(arguments[1]) * 1_000_000_000L;
        List<String> corpus = Files.readAllLines(folder.resolve("corpus.tsv"), StandardCharsets.UTF_8);
        StandardAnalyzer analyzer = new StandardAnalyzer();
        IndexWriterConfig config = new IndexWriterConfig(analyzer);
        config.setRAMBufferSizeMB(256);
        IndexWriter writer = new IndexWriter(new MMapDirectory(folder.resolve("lucene")), config);
        System.out.printf(Locale.ROOT, "index-first\t%f\t0\t0%n", indexAll(writer, corpus));
        System.out.printf(Locale.ROOT, "index-again\t%f\t0\t0%n", indexAll(writer, corpus));
        writer.close();
        IndexSearcher searcher = new IndexSearcher(DirectoryReader.open(new MMapDirectory(folder.resolve("lucene"))));
        searcher.setQueryCache(null);
        Map<String, List<String[]>> kinds = new LinkedHashMap<>();
        for (String line : Files.readAllLines(folder.resolve("queries.tsv"), StandardCharsets.UTF_8)) {
            String[] parts = line.split("\t");
            kinds.computeIfAbsent(parts[0], it -> new ArrayList<>()).add(parts);
        }
        long sum = 0;
        for (Map.Entry<String, List<String[]>> kind : kinds.entrySet()) {
            // The virtual machine compiles what runs often: before it is measured, each kind runs for as long, and until it
            // has had the processor for two seconds, however busy the machine is.
            List<Long> times = new ArrayList<>();
            for (int round = 0; round < 2; round++) {
                times.clear();
                long start = System.nanoTime();
                long processor = THREADS.getCurrentThreadCpuTime();
                long warm = round == 0 ? 2_000_000_000L : 0;
                for (int at = 0; System.nanoTime() - start < nanos
                    || THREADS.getCurrentThreadCpuTime() - processor < warm; at++) {
                    long before = System.nanoTime();
                    sum += ask(searcher, analyzer, kind.getValue().get(at % kind.getValue().size()));
                    times.add(System.nanoTime() - before);
                }
                if (round == 1) {
                    double rate = times.size() / ((System.nanoTime() - start) / 1e9);
                    Collections.sort(times);
                    long half = times.get(times.size() / 2) / 1000, most = times.get(times.size() * 99 / 100) / 1000;
                    System.out.printf(Locale.ROOT, "%s\t%f\t%d\t%d%n", kind.getKey(), rate, half, most);
                }
            }
        }
        if (sum == 42) {
            System.out.println("never");
        }
    }
}
