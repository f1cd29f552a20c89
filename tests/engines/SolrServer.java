import java.util.Properties;
import org.apache.solr.client.solrj.embedded.JettyConfig;
import org.apache.solr.client.solrj.embedded.JettySolrRunner;

/** Solr on loopback: java -cp JARS SolrServer.java HOME PORT */
public class SolrServer {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("host", "127.0.0.1");
        System.setProperty("solr.jetty.host", "127.0.0.1");
        JettyConfig config = JettyConfig.builder().setContext("/solr").setPort(Integer.parseInt(arguments[1])).build();
        new JettySolrRunner(arguments[0], new Properties(), config).start();
        System.out.println("started");
        Thread.currentThread().join();
    }
}
