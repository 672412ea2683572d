package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// A user kills a function of their own in the middle of an attempt by the command that
// the guide prints. The client gets an error, then 409 while the lease lasts, and then
// the answer of attempt 2.
func TestKill_AUsersFunctionDiesInMidFlightAndIsTakenOver(t *testing.T) {
	t.Setenv(ddblocal.EndpointVariable, ddblocal.ForTest(t).Endpoint())
	port := freePort(t)
	t.Setenv("PORT", fmt.Sprint(port))
	folder := usersModule(t)
	file := filepath.Join(folder, "template.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	short := strings.Replace(string(text), "Timeout: 10", "Timeout: 2", 1) // so that the lease ends soon
	if short == string(text) {
		t.Fatal("the template has another timeout")
	}
	if err := os.WriteFile(file, []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, writer, stack.Options{Template: file, Parameters: map[string]string{"Shop": "corner"}}, quiet())
		ended <- err
		_ = writer.CloseWithError(err)
	}()
	guide := readGuide(t, bufio.NewScanner(reader))
	t.Run("in the window", func(t *testing.T) { playInWindow(t, guide) })
	kill := regexp.MustCompile(`\n  curl -X POST (\S+/kill/)OrdersFunction\n`).FindStringSubmatch(guide)
	if kill == nil {
		t.Fatalf("the guide does not show how to kill a function:\n%s", guide)
	}
	if status, text := call(t, http.MethodPost, kill[1]+"Orders", ""); status != http.StatusNotFound || !strings.Contains(text, `"OrdersFunction"`) {
		t.Errorf("an unknown function: %d %s", status, text)
	}
	mark := func(after string) {
		t.Helper()
		if status, text := call(t, http.MethodPost, kill[1]+"OrdersFunction"+after, ""); status != http.StatusOK {
			t.Fatalf("marking the function: %d %s", status, text)
		}
	}
	orders := fmt.Sprintf("http://127.0.0.1:%d/orders", port)
	order := func() (int, string) {
		return call(t, http.MethodPost, orders, `{"pizzas":1}`, "Idempotency-Key", "order-1")
	}
	mark("")
	if status, text := order(); status != http.StatusInternalServerError {
		t.Errorf("the first request got %d %s; want 500, as of a function that died", status, text)
	}
	if status, text := order(); status != http.StatusConflict || !strings.Contains(text, "idempotency_in_progress") {
		t.Errorf("while the lease lasts a retry got %d %s; want 409", status, text)
	}
	status, body := 0, ""
	for deadline := time.Now().Add(30 * time.Second); status != http.StatusCreated && time.Now().Before(deadline); {
		status, body = order()
	}
	if status != http.StatusCreated || !strings.Contains(body, `"attempt":2`) {
		t.Errorf("when the lease was over a retry got %d %s; want 201 of attempt 2", status, body)
	}

	if status, text := call(t, http.MethodPost, kill[1]+"OrdersFunction?after=-1", ""); status != http.StatusBadRequest {
		t.Errorf("-1 answers to let pass: %d %s", status, text)
	}
	outer := func(header ...string) (int, string) {
		return call(t, http.MethodPost, orders, `{"pizzas":1}`, append(header, "Idempotency-Key", "order-2", "X-Inner", "inner-2")...)
	}
	mark("?after=1") // the inner call is stored, and the process dies before the outer answer is
	if status, text := outer(); status != http.StatusInternalServerError {
		t.Errorf("a request with an inner call got %d %s; want 500, as of a function that died", status, text)
	}
	if status, text := call(t, http.MethodPost, orders, `{"pizzas":1}`, "Idempotency-Key", "order-3", "X-Inner", "inner-2"); status != http.StatusCreated || !strings.Contains(text, `"inner":"by order-2"`) {
		t.Errorf("the inner call of another request got %d %s; want the stored answer", status, text)
	}
	if status, text := outer(); status != http.StatusConflict || !strings.Contains(text, "idempotency_in_progress") {
		t.Errorf("the outer request got %d %s; want 409, as its answer is not stored", status, text)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
