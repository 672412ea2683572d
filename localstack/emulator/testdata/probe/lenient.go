package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// lenient is a runtime that goes on when an answer of its is refused, which
// aws-lambda-go does not. The command "leave" has its worker ask for its next
// without an answer, once a file appears. With PROBE_SECOND, the workers but the
// first begin when that file appears.
func lenient(p *probe) {
	for i := range lambdacontext.MaxConcurrency() {
		go func() {
			if i > 0 {
				awaitFile(os.Getenv("PROBE_SECOND"))
			}
			for {
				if err := once(p); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
			}
		}()
	}
	hang()
}

func once(p *probe) error {
	base := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/"
	next, err := http.Get(base + "next") //nolint:noctx // it waits as long as it takes
	if err != nil {
		return err
	}
	event, err := io.ReadAll(next.Body)
	if err != nil {
		return err
	}
	var c command
	if json.Unmarshal(event, &c) == nil && c.Do == "leave" {
		awaitFile(c.File)
		return nil
	}
	milliseconds, err := strconv.ParseInt(next.Header.Get("Lambda-Runtime-Deadline-Ms"), 10, 64)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(context.Background(), time.UnixMilli(milliseconds))
	defer cancel()
	requestID := next.Header.Get("Lambda-Runtime-Aws-Request-Id")
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: requestID})
	answer, err := p.Invoke(ctx, event)
	path := "/response"
	if err != nil {
		path, answer = "/error", fmt.Appendf(nil, `{"errorMessage":%q}`, err.Error())
	}
	response, err := http.Post(base+requestID+path, "application/json", bytes.NewReader(answer)) //nolint:noctx // as above
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusAccepted {
		fmt.Printf("refused: %d %s\n", response.StatusCode, body)
	}
	return err
}
