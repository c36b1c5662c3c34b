// langchain4j-anthropic: chat models with the server's code execution tool. Reads base, the address of the door, and key.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.exception.LangChain4jException;
import dev.langchain4j.model.anthropic.AnthropicChatModel;
import dev.langchain4j.model.anthropic.AnthropicChatResponseMetadata;
import dev.langchain4j.model.anthropic.AnthropicServerTool;
import dev.langchain4j.model.anthropic.AnthropicServerToolResult;
import dev.langchain4j.model.anthropic.AnthropicStreamingChatModel;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

class LangChain4jAnthropic {
    static final ObjectMapper JSON = new ObjectMapper();
    static final AnthropicServerTool TOOL =
            AnthropicServerTool.builder().type("code_execution_20250825").name("code_execution").build();
    static JsonNode ask;

    static AnthropicChatModel.AnthropicChatModelBuilder model(String key) {
        return AnthropicChatModel.builder().baseUrl(ask.get("base").asText() + "/v1").apiKey(key).modelName("scripted")
                .beta("code-execution-2025-08-25").serverTools(TOOL).returnServerToolResults(true).maxTokens(1024)
                .maxRetries(0);
    }

    static ChatRequest asked(List<List<Map<String, String>>> turns) throws Exception {
        return ChatRequest.builder().messages(UserMessage.from(JSON.writeValueAsString(Map.of("turns", turns)))).build();
    }

    static JsonNode result(ChatResponse response) {
        Object results = response.aiMessage().attributes().get("server_tool_results");
        return JSON.valueToTree(((AnthropicServerToolResult) ((List<?>) results).get(0)).content());
    }

    static ChatResponse go(String key, List<List<Map<String, String>>> turns, String container) throws Exception {
        AnthropicChatModel.AnthropicChatModelBuilder model = model(key);
        if (container != null)
            model.customParameters(Map.of("container", container));
        return model.build().chat(asked(turns));
    }

    static ObjectNode run(String key) throws Exception {
        ChatResponse response = go(key, List.of(List.of(Map.of("text", "I count."), Map.of("bash", "echo $((6 * 7)); exit 3")),
                List.of(Map.of("text", "It is 42."))), null);
        ObjectNode seen = JSON.createObjectNode();
        seen.set("result", result(response));
        return seen.put("text", response.aiMessage().text()).put("stop", response.finishReason().toString());
    }

    // It has no word of its own for containers: the id is in the raw answer, and goes into the request as it is.
    static String state(String key) throws Exception {
        ChatResponse first = go(key, List.of(List.of(Map.of("bash", "echo kept > note"))), null);
        String body = ((AnthropicChatResponseMetadata) first.metadata()).rawHttpResponse().body();
        String container = JSON.readTree(body).get("container").get("id").asText();
        return result(go(key, List.of(List.of(Map.of("bash", "cat note"))), container)).get("stdout").asText();
    }

    static ObjectNode stream(String key) throws Exception {
        StringBuilder text = new StringBuilder();
        CompletableFuture<ChatResponse> end = new CompletableFuture<>();
        AnthropicStreamingChatModel.builder().baseUrl(ask.get("base").asText() + "/v1").apiKey(key).modelName("scripted")
                .beta("code-execution-2025-08-25").serverTools(TOOL).returnServerToolResults(true).maxTokens(1024).build()
                .chat(asked(List.of(List.of(Map.of("text", "I count."), Map.of("bash", "echo 42")),
                        List.of(Map.of("text", "It is 42.")))), new StreamingChatResponseHandler() {
            @Override
            public void onPartialResponse(String piece) {
                text.append(piece);
            }

            @Override
            public void onCompleteResponse(ChatResponse response) {
                end.complete(response);
            }

            @Override
            public void onError(Throwable error) {
                end.completeExceptionally(error);
            }
        });
        ChatResponse response = end.get(60, TimeUnit.SECONDS);
        ObjectNode seen = JSON.createObjectNode();
        seen.set("result", result(response));
        return seen.put("text", text.toString());
    }

    public static void main(String[] args) throws Exception {
        ask = JSON.readTree(System.in.readAllBytes());
        String key = ask.get("key").asText();
        ObjectNode seen = JSON.createObjectNode();
        seen.set("run", run(key));
        seen.put("state", state(key));
        seen.set("stream", stream(key));
        seen.set("limit", result(go(key, List.of(List.of(Map.of("bash", "sleep 600"))), null)));
        for (String wrong : List.of("key", "error"))
            try {
                go(wrong.equals("key") ? "wrong" : key, List.of(List.of(Map.of("bash", "true"))),
                        wrong.equals("key") ? null : "container_01missing");
            } catch (LangChain4jException e) {
                seen.put(wrong, Refusal.text(e));
            }
        System.out.println(seen);
        System.exit(0);
    }
}
