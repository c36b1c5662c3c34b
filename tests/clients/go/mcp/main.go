// The MCP SDK for Go. Reads url and key, or command, args and env; and calls.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type ask struct {
	URL, Key, Command string
	Args              []string
	Env               map[string]string
	MayFail           bool `json:"may_fail"`
	Calls             []struct {
		Case, Tool string
		Arguments  map[string]any
	}
}

type image struct {
	Mime string `json:"mime"`
	Data string `json:"data"`
}

type shown struct {
	Text    string  `json:"text"`
	IsError bool    `json:"is_error"`
	Images  []image `json:"images"`
}

func show(r *mcp.CallToolResult) shown {
	var texts []string
	s := shown{IsError: r.IsError, Images: []image{}}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			texts = append(texts, c.Text)
		case *mcp.ImageContent:
			s.Images = append(s.Images, image{c.MIMEType, base64.StdEncoding.EncodeToString(c.Data)})
		}
	}
	s.Text = strings.Join(texts, "\n")
	return s
}

// Sends its key with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func transport(a ask) mcp.Transport {
	if a.URL != "" {
		return &mcp.StreamableClientTransport{Endpoint: a.URL, HTTPClient: &http.Client{Transport: bearer(a.Key)}}
	}
	command := exec.Command(a.Command, a.Args...)
	for name, value := range a.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	return &mcp.CommandTransport{Command: command}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	var a ask
	var lock sync.Mutex
	ctx, heard, tools, calls := context.Background(), []float64{}, []string{}, map[string]shown{}

	if err := json.NewDecoder(os.Stdin).Decode(&a); err != nil {
		log.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "walk", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			lock.Lock()
			defer lock.Unlock()
			heard = append(heard, r.Params.Progress)
		},
	})
	session, err := client.Connect(ctx, transport(a), nil)
	if err != nil && a.MayFail {
		fmt.Println(string(must(json.Marshal(map[string]any{"refused": err.Error()}))))
		return
	}
	must(session, err)
	for tool, err := range session.Tools(ctx, nil) {
		tools = append(tools, must(tool, err).Name)
	}
	for _, c := range a.Calls {
		params := &mcp.CallToolParams{Name: c.Tool, Arguments: c.Arguments}
		if c.Case == "progress" {
			params.SetProgressToken("told")
		}
		calls[c.Case] = show(must(session.CallTool(ctx, params)))
	}
	session.Close()
	lock.Lock()
	defer lock.Unlock()
	fmt.Println(string(must(json.Marshal(map[string]any{"tools": tools, "calls": calls, "progress": heard}))))
}
