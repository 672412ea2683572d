// Command probe is a Lambda function that does what its event asks it to do.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// command is the event of a direct invocation. Behind a gateway, Do is the
// header x-do and Raw is the body.
type command struct {
	Do              string            `json:"do"`
	Raw             string            `json:"raw"`
	Bytes           int               `json:"bytes"`
	People          int               `json:"people"`
	File            string            `json:"file"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

type probe struct {
	served  atomic.Int32
	meeting meeting
}

func (p *probe) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	p.served.Add(1)
	var c command
	if err := json.Unmarshal(event, &c); err != nil {
		return nil, err
	}
	for name, value := range c.Headers {
		switch strings.ToLower(name) {
		case "x-do":
			c.Do, c.Raw = value, c.Body
		case "x-file":
			c.File = value
		}
	}
	if c.IsBase64Encoded {
		raw, err := base64.StdEncoding.DecodeString(c.Body)
		if err != nil {
			return nil, err
		}
		c.Raw = string(raw)
	}
	switch c.Do {
	case "respond": // Raw, byte for byte
		return []byte(c.Raw), nil
	case "about":
		return p.about(ctx)
	case "log":
		fmt.Println("to stdout")
		fmt.Fprint(os.Stderr, "to stderr, no line end")
		return []byte(`null`), nil
	case "error":
		return nil, errors.New("went wrong")
	case "panic":
		panic("boom")
	case "exit":
		os.Exit(7)
	case "big":
		return fmt.Appendf(nil, "%q", strings.Repeat("x", c.Bytes-2)), nil
	case "until": // runs until a file appears, whatever the deadline
		return p.until(c.File)
	case "meet": // runs until so many invocations of this process are here at once
		p.meeting.join(c.People)
		return p.about(ctx)
	case "deadline":
		<-ctx.Done()
		return nil, ctx.Err()
	case "hang":
		hang()
	}
	// Without a command: the event, as the body of a response.
	return json.Marshal(map[string]any{"statusCode": 200, "body": string(event)})
}

func (p *probe) about(ctx context.Context) ([]byte, error) {
	deadline, _ := ctx.Deadline()
	lc, _ := lambdacontext.FromContext(ctx)
	directory, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"pid": os.Getpid(), "served": p.served.Load(), "env": os.Environ(), "dir": directory,
		"deadline": deadline.UnixMilli(), "requestId": lc.AwsRequestID, "arn": lc.InvokedFunctionArn,
		"custom": lc.ClientContext.Custom, "trace": os.Getenv("_X_AMZN_TRACE_ID"),
	})
}

func (p *probe) until(file string) ([]byte, error) {
	if err := os.WriteFile(file+".begun", nil, 0o600); err != nil {
		return nil, err
	}
	awaitFile(file)
	if err := os.WriteFile(file+".done", nil, 0o600); err != nil {
		return nil, err
	}
	return []byte(`{"statusCode":200,"body":"done"}`), nil
}

// awaitFile returns when a file is there; none needs to be if it has no name.
func awaitFile(file string) {
	if file == "" {
		return
	}
	for range time.Tick(5 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
}

// hang is not select {}, which the Go runtime may take for a deadlock.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

func main() {
	switch os.Getenv("PROBE_INIT") {
	case "exit":
		fmt.Println("no luck")
		os.Exit(3)
	case "hang":
		hang()
	}
	if os.Getenv("PROBE_RUNTIME") == "lenient" {
		lenient(&probe{})
	}
	lambda.StartHandler(&probe{})
}
