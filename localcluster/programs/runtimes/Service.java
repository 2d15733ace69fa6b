// What a JVM makes of its container's limits, as JSON by HTTP. Arguments: address, port, and the CPU seconds that the
// main thread uses before it listens, in addition to those of the compiler: `java Service.java` compiles in memory.

import com.sun.management.HotSpotDiagnosticMXBean;
import com.sun.net.httpserver.HttpServer;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;

public class Service {
    public static void main(String[] arguments) throws Exception {
        burn(Double.parseDouble(arguments[2]));
        var address = new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
        var server = HttpServer.create(address, 0);
        server.createContext("/", exchange -> {
            var body = limits().getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    static String limits() {
        var runtime = Runtime.getRuntime();
        var collector = ManagementFactory.getGarbageCollectorMXBeans().get(0).getName();
        var flags = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        var collecting = flags.getVMOption("ParallelGCThreads").getValue();
        return String.format(
            "{\"cpus\": %d, \"memory\": %d, \"collector\": \"%s\", \"collecting\": %s}",
            runtime.availableProcessors(), runtime.maxMemory(), collector, collecting);
    }

    static void burn(double seconds) {
        var thread = ManagementFactory.getThreadMXBean();
        var end = thread.getCurrentThreadCpuTime() + seconds * 1e9;
        while (thread.getCurrentThreadCpuTime() < end) { }
    }
}
