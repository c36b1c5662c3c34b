// The MCP SDK for Java. Reads url and key, or command, args and env; and calls.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.McpSyncClient;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpSchema;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;

class McpSdk {
    static final ObjectMapper JSON = new ObjectMapper();

    static McpClientTransport transport(JsonNode ask) {
        if (ask.has("url")) {
            URI url = URI.create(ask.get("url").asText());
            return HttpClientStreamableHttpTransport.builder(url.resolve("/").toString())
                    .endpoint(url.getPath())
                    .httpRequestCustomizer((request, method, uri, body, context) ->
                            request.setHeader("Authorization", "Bearer " + ask.get("key").asText()))
                    .build();
        }
        return new StdioClientTransport(
                ServerParameters.builder(ask.get("command").asText())
                        .args(JSON.convertValue(ask.get("args"), String[].class))
                        .env(JSON.convertValue(ask.get("env"), Map.class))
                        .build(),
                McpJsonDefaults.getMapper());
    }

    static ObjectNode shown(McpSchema.CallToolResult result) {
        ObjectNode seen = JSON.createObjectNode();
        seen.put("is_error", Boolean.TRUE.equals(result.isError()));
        seen.put("text", result.content().stream().filter(McpSchema.TextContent.class::isInstance)
                .map(c -> ((McpSchema.TextContent) c).text()).collect(Collectors.joining("\n")));
        ArrayNode images = seen.putArray("images");
        for (McpSchema.Content c : result.content())
            if (c instanceof McpSchema.ImageContent image)
                images.addObject().put("mime", image.mimeType()).put("data", image.data());
        return seen;
    }

    public static void main(String[] args) throws Exception {
        JsonNode ask = JSON.readTree(System.in.readAllBytes());
        List<Double> heard = new CopyOnWriteArrayList<>();
        ObjectNode seen = JSON.createObjectNode();
        try (McpSyncClient client = McpClient.sync(transport(ask)).requestTimeout(Duration.ofSeconds(60))
                .progressConsumer(progress -> heard.add(progress.progress())).build()) {
            client.initialize();
            seen.set("tools", JSON.valueToTree(client.listTools().tools().stream().map(McpSchema.Tool::name).toList()));
            ObjectNode calls = seen.putObject("calls");
            for (JsonNode call : ask.get("calls")) {
                String name = call.get("case").asText();
                McpSchema.CallToolRequest.Builder request = McpSchema.CallToolRequest.builder(call.get("tool").asText())
                        .arguments(JSON.convertValue(call.get("arguments"), Map.class));
                if (name.equals("progress"))
                    request.progressToken("told");
                calls.set(name, shown(client.callTool(request.build())));
            }
        } catch (RuntimeException e) {
            if (!ask.path("may_fail").asBoolean())
                throw e;
            seen.put("refused", Refusal.text(e));
        }
        seen.set("progress", JSON.valueToTree(heard));
        System.out.println(seen);
        System.exit(0);
    }
}
