// langchain4j-mcp: the tools of an MCP server as LangChain4j's agents call them. Reads url and key, or command, args
// and env; and calls.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.langchain4j.agent.tool.ToolExecutionRequest;
import dev.langchain4j.agent.tool.ToolSpecification;
import dev.langchain4j.data.message.Content;
import dev.langchain4j.data.message.ImageContent;
import dev.langchain4j.data.message.TextContent;
import dev.langchain4j.exception.ToolExecutionException;
import dev.langchain4j.mcp.client.DefaultMcpClient;
import dev.langchain4j.mcp.client.McpClient;
import dev.langchain4j.mcp.client.transport.McpTransport;
import dev.langchain4j.mcp.client.transport.http.StreamableHttpMcpTransport;
import dev.langchain4j.mcp.client.transport.stdio.StdioMcpTransport;
import dev.langchain4j.service.tool.ToolExecutionResult;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;

class LangChain4jMcp {
    static final ObjectMapper JSON = new ObjectMapper();

    static McpTransport transport(JsonNode ask) {
        if (ask.has("url"))
            return StreamableHttpMcpTransport.builder().url(ask.get("url").asText())
                    .customHeaders(Map.of("Authorization", "Bearer " + ask.get("key").asText())).build();
        List<String> command = new ArrayList<>(List.of(ask.get("command").asText()));
        command.addAll(List.of(JSON.convertValue(ask.get("args"), String[].class)));
        return StdioMcpTransport.builder().command(command).environment(JSON.convertValue(ask.get("env"), Map.class)).build();
    }

    // Its own extractor takes text alone, and throws where there is an image or a link.
    static ToolExecutionResult extract(JsonNode content, boolean isError) {
        List<Content> contents = new ArrayList<>();
        for (JsonNode block : content)
            switch (block.get("type").asText()) {
                case "text" -> contents.add(TextContent.from(block.get("text").asText()));
                case "image" -> contents.add(ImageContent.from(block.get("data").asText(), block.get("mimeType").asText()));
                default -> { }
            }
        return ToolExecutionResult.builder().isError(isError).resultContents(contents).build();
    }

    static ObjectNode shown(ToolExecutionResult result) {
        ObjectNode seen = JSON.createObjectNode();
        ArrayNode images = seen.put("is_error", result.isError()).putArray("images");
        for (Content c : result.resultContents())
            if (c instanceof ImageContent image)
                images.addObject().put("mime", image.image().mimeType()).put("data", image.image().base64Data());
        seen.put("text", result.resultContents().stream().filter(TextContent.class::isInstance)
                .map(c -> ((TextContent) c).text()).collect(Collectors.joining("\n")));
        return seen;
    }

    // It throws what a tool calls an error.
    static ObjectNode call(McpClient client, ToolExecutionRequest request) {
        try {
            return shown(client.executeTool(request));
        } catch (ToolExecutionException e) {
            return shown(ToolExecutionResult.builder().isError(true)
                    .resultContents(List.of(TextContent.from(e.getMessage()))).build());
        }
    }

    public static void main(String[] args) throws Exception {
        JsonNode ask = JSON.readTree(System.in.readAllBytes());
        List<Double> heard = new CopyOnWriteArrayList<>();
        ObjectNode seen = JSON.createObjectNode();
        try (McpClient client = DefaultMcpClient.builder().transport(transport(ask)).autoHealthCheck(false)
                .toolResultExtractor(LangChain4jMcp::extract)
                .progressHandler(progress -> heard.add(progress.progress())).build()) {
            seen.set("tools", JSON.valueToTree(client.listTools().stream().map(ToolSpecification::name).toList()));
            ObjectNode calls = seen.putObject("calls");
            for (JsonNode call : ask.get("calls")) {
                heard.clear();  // it asks for progress with each call
                calls.set(call.get("case").asText(), call(client, ToolExecutionRequest.builder()
                        .id("1").name(call.get("tool").asText()).arguments(call.get("arguments").toString()).build()));
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
