// Anthropic's SDK for Go. Reads base, the address of the door; key; and the commands files and plot.
package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

type object = map[string]any

var ask struct{ Base, Key, Files, Plot string }
var ctx = context.Background()
var client anthropic.Client

func connect(key string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(ask.Base), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func text(t string) object      { return object{"text": t} }
func bash(c string) object      { return object{"bash": c} }
func turn(s ...object) []object { return s }

// A request whose text is the model's script; container: one to go on with.
func asked(container string, turns ...[]object) anthropic.BetaMessageNewParams {
	script := string(must(json.Marshal(object{"turns": turns})))
	params := anthropic.BetaMessageNewParams{
		Model: "scripted", MaxTokens: 1024,
		Tools: []anthropic.BetaToolUnionParam{{OfCodeExecutionTool20250825: &anthropic.BetaCodeExecutionTool20250825Param{}}},
		Betas: []anthropic.AnthropicBeta{"code-execution-2025-08-25", "files-api-2025-04-14"},
		Messages: []anthropic.BetaMessageParam{
			anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(script))},
	}
	if container != "" {
		params.Container.OfString = anthropic.String(container)
	}
	return params
}

func send(container string, turns ...[]object) *anthropic.BetaMessage {
	return must(client.Beta.Messages.New(ctx, asked(container, turns...)))
}

func result(message *anthropic.BetaMessage) anthropic.BetaBashCodeExecutionToolResultBlockContentUnion {
	for _, block := range message.Content {
		if found, is := block.AsAny().(anthropic.BetaBashCodeExecutionToolResultBlock); is {
			return found.Content
		}
	}
	log.Fatal("no result in ", message.RawJSON())
	panic("not reached")
}

func kinds(message *anthropic.BetaMessage) (found []string) {
	for _, block := range message.Content {
		found = append(found, block.Type)
	}
	return found
}

func download(file string) []byte {
	response := must(client.Beta.Files.Download(ctx, file, anthropic.BetaFileDownloadParams{}))
	defer response.Body.Close()
	return must(io.ReadAll(response.Body))
}

func run() any {
	message := send("", turn(text("I count."), bash("echo $((6 * 7)); echo odd >&2; exit 3")), turn(text("42.")))
	done := result(message)
	return object{"kinds": kinds(message), "stop": message.StopReason, "stdout": done.Stdout, "stderr": done.Stderr,
		"code": done.ReturnCode, "container": message.Container.ID}
}

func state() any {
	first := send("", turn(bash("echo kept > note")))
	return result(send(first.Container.ID, turn(bash("cat note")))).Stdout
}

func files() any {
	sent := must(client.Beta.Files.Upload(ctx, anthropic.BetaFileUploadParams{
		File: anthropic.File(bytes.NewReader([]byte("n\n4\n9\n")), "in.csv", "text/csv")}))
	params := asked("", turn(bash(ask.Files)))
	params.Messages[0].Content = append(params.Messages[0].Content, anthropic.NewBetaContainerUploadBlock(sent.ID))
	done := result(must(client.Beta.Messages.New(ctx, params)))
	made := must(client.Beta.Files.GetMetadata(ctx, done.Content[0].FileID, anthropic.BetaFileGetMetadataParams{}))
	data := download(made.ID)
	must(client.Beta.Files.Delete(ctx, made.ID, anthropic.BetaFileDeleteParams{}))
	return object{"stdout": done.Stdout, "name": made.Filename, "data": hex.EncodeToString(data)}
}

func plot() any {
	done := result(send("", turn(bash(ask.Plot))))
	return hex.EncodeToString(download(done.Content[0].FileID)[:8])
}

func stream() any {
	seen, said, whole := map[string]bool{}, "", anthropic.BetaMessage{}
	events := client.Beta.Messages.NewStreaming(ctx, asked("", turn(text("I count."), bash("echo 42")), turn(text("It is 42."))))
	for events.Next() {
		event := events.Current()
		if err := whole.Accumulate(event); err != nil {
			log.Fatal(err)
		}
		seen[event.Type] = true
		said += event.Delta.Text
	}
	if events.Err() != nil {
		log.Fatal(events.Err())
	}
	names := []string{}
	for name := range seen {
		names = append(names, name)
	}
	return object{"kinds": names, "text": said, "final": kinds(&whole), "stdout": result(&whole).Stdout}
}

func limit() any {
	return result(send("", turn(bash("sleep 600")))).ErrorCode
}

func told(err error) any {
	var refusal *anthropic.Error
	if !errors.As(err, &refusal) {
		log.Fatal("not a refusal: ", err)
	}
	return object{"status": refusal.StatusCode, "type": refusal.Type(), "id": refusal.RequestID}
}

func refused() any {
	_, err := client.Beta.Messages.New(ctx, asked("container_01missing", turn(bash("true"))))
	return told(err)
}

func key() any {
	stranger := connect("wrong")
	_, err := stranger.Models.List(ctx, anthropic.ModelListParams{})
	return told(err)
}

func models() any {
	found := []string{}
	for _, model := range must(client.Models.List(ctx, anthropic.ModelListParams{})).Data {
		found = append(found, model.ID)
	}
	return found
}

func main() {
	if err := json.NewDecoder(os.Stdin).Decode(&ask); err != nil {
		log.Fatal(err)
	}
	client = connect(ask.Key)
	seen := object{"run": run(), "state": state(), "files": files(), "plot": plot(), "stream": stream(), "limit": limit(),
		"error": refused(), "key": key(), "models": models()}
	fmt.Println(string(must(json.Marshal(seen))))
}
