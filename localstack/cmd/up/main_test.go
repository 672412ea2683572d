package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

func TestPortMustBeANumber(t *testing.T) {
	for _, port := range []string{"http", "0", "-1", "65536", "3000 "} {
		t.Setenv("PORT", port)
		if err := run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "PORT is") {
			t.Errorf("with PORT=%q, run = %v; want an error that names PORT", port, err)
		}
	}
}

func TestUpAnswersUntilItIsStopped(t *testing.T) {
	t.Setenv(ddblocal.EndpointVariable, ddblocal.ForTest(t).Endpoint())
	port := freePort(t)
	t.Setenv("PORT", fmt.Sprint(port))
	base := fmt.Sprintf("http://127.0.0.1:%d", port)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, writer)
		ended <- err
		_ = writer.CloseWithError(err)
	}()

	var guide strings.Builder
	lines := bufio.NewScanner(reader)
	for lines.Scan() {
		guide.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Ctrl-C stops") {
			break
		}
	}
	if lines.Err() != nil {
		t.Fatalf("up did not start: %v", lines.Err())
	}
	token := regexp.MustCompile(`TOKEN=(\S+)`).FindStringSubmatch(guide.String())
	if token == nil || !strings.Contains(guide.String(), "curl -i "+base+"/payments ") {
		t.Fatalf("the guide names no token, or no curl line for %s:\n%s", base, &guide)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/payments", strings.NewReader(`{"amount":1250,"currency":"EUR"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token[1])
	req.Header.Set("Idempotency-Key", "order-1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusCreated {
		t.Errorf("a payment as the guide shows it: %d, %v; want 201", resp.StatusCode, err)
	}

	stop()
	if err := <-ended; err != nil {
		t.Errorf("run = %v; want a clean end", err)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://")); err == nil {
		t.Errorf("%s still answers", base)
		_ = c.Close()
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	return l.Addr().(*net.TCPAddr).Port
}
