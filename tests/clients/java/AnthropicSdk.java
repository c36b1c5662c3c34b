// Anthropic's SDK for Java. Reads base, the address of the door, and key.

import com.anthropic.client.AnthropicClient;
import com.anthropic.client.okhttp.AnthropicOkHttpClient;
import com.anthropic.core.MultipartField;
import com.anthropic.core.http.HttpResponse;
import com.anthropic.core.http.StreamResponse;
import com.anthropic.errors.AnthropicServiceException;
import com.anthropic.helpers.BetaMessageAccumulator;
import com.anthropic.models.beta.files.BetaFileMetadata;
import com.anthropic.models.beta.files.FileUploadParams;
import com.anthropic.models.beta.messages.BetaBashCodeExecutionResultBlock;
import com.anthropic.models.beta.messages.BetaBashCodeExecutionToolResultBlock;
import com.anthropic.models.beta.messages.BetaCodeExecutionTool20250825;
import com.anthropic.models.beta.messages.BetaContentBlockParam;
import com.anthropic.models.beta.messages.BetaMessage;
import com.anthropic.models.beta.messages.BetaRawMessageStreamEvent;
import com.anthropic.models.beta.messages.MessageCreateParams;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

class AnthropicSdk {
    static final ObjectMapper JSON = new ObjectMapper();
    static JsonNode ask;
    static AnthropicClient client;

    static AnthropicClient client(String key) {
        return AnthropicOkHttpClient.builder().baseUrl(ask.get("base").asText()).apiKey(key).maxRetries(0).build();
    }

    static Map<String, String> text(String text) {
        return Map.of("text", text);
    }

    static Map<String, String> bash(String command) {
        return Map.of("bash", command);
    }

    // A request whose text is the model's script; content: further blocks of the user.
    static MessageCreateParams.Builder asked(List<List<Map<String, String>>> turns, BetaContentBlockParam... content)
            throws Exception {
        List<BetaContentBlockParam> blocks = new ArrayList<>();
        blocks.add(BetaContentBlockParam.ofText(JSON.writeValueAsString(Map.of("turns", turns))));
        blocks.addAll(List.of(content));
        return MessageCreateParams.builder().model("scripted").maxTokens(1024)
                .addTool(BetaCodeExecutionTool20250825.builder().build())
                .addBeta("code-execution-2025-08-25").addBeta("files-api-2025-04-14")
                .addUserMessageOfContentBlockParams(blocks);
    }

    static BetaMessage go(MessageCreateParams.Builder request) {
        return client.beta().messages().create(request.build());
    }

    static BetaBashCodeExecutionToolResultBlock.Content result(BetaMessage message) {
        return message.content().stream().flatMap(b -> b.bashCodeExecutionToolResult().stream()).findFirst().get().content();
    }

    static BetaBashCodeExecutionResultBlock done(BetaMessage message) {
        return result(message).asBetaBashCodeExecutionResultBlock();
    }

    static List<String> kinds(BetaMessage message) {
        return message.content().stream().map(b -> b.type().asString()).toList();
    }

    static byte[] download(String file) throws Exception {
        try (HttpResponse response = client.beta().files().download(file)) {
            return response.body().readAllBytes();
        }
    }

    static Object run() throws Exception {
        BetaMessage message = go(asked(List.of(
                List.of(text("I count."), bash("echo $((6 * 7)); echo odd >&2; exit 3")), List.of(text("42.")))));
        return Map.of("kinds", kinds(message), "stop", message.stopReason().get().asString(), "stdout", done(message).stdout(),
                "stderr", done(message).stderr(), "code", done(message).returnCode(),
                "container", message.container().get().id());
    }

    static Object state() throws Exception {
        BetaMessage first = go(asked(List.of(List.of(bash("echo kept > note")))));
        return done(go(asked(List.of(List.of(bash("cat note")))).container(first.container().get().id()))).stdout();
    }

    static Object files() throws Exception {
        BetaFileMetadata sent = client.beta().files().upload(FileUploadParams.builder()
                .file(MultipartField.<InputStream>builder().value(new ByteArrayInputStream("n\n4\n9\n".getBytes()))
                        .filename("in.csv").contentType("text/csv").build())
                .build());
        BetaBashCodeExecutionResultBlock result = done(go(asked(
                List.of(List.of(bash(ask.get("files").asText()))), BetaContentBlockParam.ofContainerUpload(sent.id()))));
        BetaFileMetadata made = client.beta().files().retrieveMetadata(result.content().get(0).fileId());
        byte[] data = download(made.id());
        client.beta().files().delete(made.id());
        return Map.of("stdout", result.stdout(), "name", made.filename(), "data", HexFormat.of().formatHex(data));
    }

    static Object plot() throws Exception {
        BetaBashCodeExecutionResultBlock result = done(go(asked(List.of(List.of(bash(ask.get("plot").asText()))))));
        return HexFormat.of().formatHex(download(result.content().get(0).fileId()), 0, 8);
    }

    static Object stream() throws Exception {
        TreeSet<String> kinds = new TreeSet<>();
        StringBuilder text = new StringBuilder();
        BetaMessageAccumulator whole = BetaMessageAccumulator.create();
        MessageCreateParams request = asked(List.of(
                List.of(text("I count."), bash("echo 42")), List.of(text("It is 42.")))).build();
        try (StreamResponse<BetaRawMessageStreamEvent> events = client.beta().messages().createStreaming(request)) {
            events.stream().peek(whole::accumulate).forEach(event -> {
                kinds.add(event.type().asString());
                event.contentBlockDelta().flatMap(d -> d.delta().text()).ifPresent(d -> text.append(d.text()));
            });
        }
        return Map.of("kinds", kinds, "text", text.toString(), "final", kinds(whole.message()),
                "stdout", done(whole.message()).stdout());
    }

    static Object limit() throws Exception {
        return result(go(asked(List.of(List.of(bash("sleep 600"))))))
                .asBetaBashCodeExecutionToolResultError().errorCode().asString();
    }

    static Object told(AnthropicServiceException e) {
        return Map.of("status", e.statusCode(), "type", e.errorType().get().asString(), "id", e.requestId().get());
    }

    static Object error() throws Exception {
        try {
            return go(asked(List.of(List.of(bash("true")))).container("container_01missing")).id();
        } catch (AnthropicServiceException e) {
            return told(e);
        }
    }

    static Object key() {
        try {
            return client("wrong").models().list().data().size();
        } catch (AnthropicServiceException e) {
            return told(e);
        }
    }

    static Object models() {
        return client.models().list().data().stream().map(m -> m.id()).toList();
    }

    public static void main(String[] args) throws Exception {
        ask = JSON.readTree(System.in.readAllBytes());
        client = client(ask.get("key").asText());
        ObjectNode seen = JSON.createObjectNode();
        seen.set("run", JSON.valueToTree(run()));
        seen.set("state", JSON.valueToTree(state()));
        seen.set("files", JSON.valueToTree(files()));
        seen.set("plot", JSON.valueToTree(plot()));
        seen.set("stream", JSON.valueToTree(stream()));
        seen.set("limit", JSON.valueToTree(limit()));
        seen.set("error", JSON.valueToTree(error()));
        seen.set("key", JSON.valueToTree(key()));
        seen.set("models", JSON.valueToTree(models()));
        System.out.println(seen);
        System.exit(0);
    }
}
