import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.PluginInfo;

/** One OpenSearch node on loopback: java -cp JARS OpenSearchNode.java HOME PORT PLUGIN_CLASS... */
public class OpenSearchNode extends Node {
    @SuppressWarnings({"unchecked", "rawtypes"})
    private OpenSearchNode(Environment environment, Collection plugins) {
        super(environment, plugins, false);
    }

    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", arguments[0])
            .put("http.port", arguments[1])
            .put("network.host", "127.0.0.1")
            .put("transport.port", "0")
            .put("discovery.type", "single-node")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        List<Object> plugins = new ArrayList<>();
        for (int i = 2; i < arguments.length; i++) {
            Class<? extends Plugin> plugin = Class.forName(arguments[i]).asSubclass(Plugin.class);
            // version 2 takes classes, version 3 descriptions of them
            plugins.add(Version.CURRENT.major < 3 ? plugin : new PluginInfo(
                plugin.getName(), "on the class path", "NA", Version.CURRENT, "17", plugin.getName(), List.of(), false));
        }
        Environment environment =
            InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), Path.of(arguments[0], "config"), () -> "test");
        new OpenSearchNode(environment, plugins).start();
        System.out.println("started");
        Thread.currentThread().join();
    }
}
