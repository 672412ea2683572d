// Command fiber is the scoreboard's driver of Fiber's idempotency middleware.
//
// The middleware has its records and locks in the memory of the process, which is the default. Its
// documentation describes no lock that several processes can share.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "fiber:", err)
		os.Exit(1)
	}
}

// callHeader carries the id of a call, by which the handler finds its script.
const callHeader = "X-Call"

func run(ctx context.Context) error {
	var calls sync.Map // *driver.Call by id
	app := fiber.New()
	app.Use(idempotency.New(idempotency.Config{KeyHeader: "Idempotency-Key"}))
	app.Post("/*", func(c fiber.Ctx) error {
		found, _ := calls.Load(c.Get(callHeader))
		call := found.(*driver.Call)
		if call.Script.Mutate {
			c.Request().Header.Set("Idempotency-Key", "")
			clear(c.Request().Body())
		}
		if err := call.Run(nil); err != nil {
			return err
		}
		c.Set("Location", driver.Location)
		return c.Status(call.Script.Status).Send(call.Script.Body)
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	url := "http://" + listener.Addr().String()
	client := &http.Client{Transport: &http.Transport{}}
	return driver.Serve(time.Now, func(ctx context.Context, call *driver.Call) driver.Answer {
		id := strconv.Itoa(call.ID)
		calls.Store(id, call)
		answer, err := ask(ctx, client, url, id, call.Request)
		if err != nil {
			return driver.Answer{Error: err.Error()}
		}
		if call.Script.Fail && string(answer.Body) == driver.ErrScripted.Error() {
			return driver.Answer{Error: driver.ScriptedError}
		}
		return answer
	})
}

// ask sends the request to Fiber over HTTP.
func ask(ctx context.Context, client *http.Client, url, id string, r driver.Request) (driver.Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return driver.Answer{}, err
	}
	request.Header.Set(callHeader, id)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-User-Id", r.Caller)
	if r.Key != "" {
		request.Header.Set("Idempotency-Key", r.Key)
	}
	response, err := client.Do(request)
	if err != nil {
		return driver.Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return driver.Answer{Status: response.StatusCode, Location: response.Header.Get("Location"), Body: body}, err
}
