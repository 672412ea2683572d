// Command toolkit is the scoreboard's driver of this toolkit: an HTTP API's handler behind
// Guard.APIGatewayV2, with the default options.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

func main() {
	if err := run(context.Background(), driver.ReadSettings()); err != nil {
		fmt.Fprintln(os.Stderr, "toolkit:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s driver.Settings) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	clock := func() time.Time { return time.Now().Add(s.ClockAhead) }
	guard := lambdaidem.New(dynamostore.New(dynamodb.NewFromConfig(cfg), s.Table), func(o *lambdaidem.Options) {
		o.Namespace = "payments" // on Lambda, the function's name
		o.Clock = clock
		if s.Wait {
			o.Wait = 10 * time.Second
		}
		for _, secret := range s.Secrets {
			o.FingerprintSecrets = append(o.FingerprintSecrets, []byte(secret))
		}
	})
	return driver.Serve(clock, func(ctx context.Context, c *driver.Call) driver.Answer {
		ctx, cancel := context.WithTimeout(ctx, c.Left) // as aws-lambda-go does
		defer cancel()
		handler := guard.APIGatewayV2(func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return handle(ctx, e, c, s.Accounts)
		})
		return answerOf(handler(ctx, event(c.Request)))
	})
}

// event returns the request as API Gateway passes it to a function behind a JWT authorizer.
func event(r driver.Request) events.APIGatewayV2HTTPRequest {
	return idemtest.Request{
		Path: r.Path, Key: r.Key, Body: r.Body, Caller: idemtest.JWT("https://issuer.example.com", r.Caller),
	}.APIGatewayV2()
}

func handle(ctx context.Context, e events.APIGatewayV2HTTPRequest, c *driver.Call, accounts string) (events.APIGatewayV2HTTPResponse, error) {
	if c.Script.Mutate {
		clear(e.Headers)
		maps.Copy(e.RequestContext.Authorizer.JWT.Claims, map[string]string{"sub": "nobody"})
	}
	err := c.Run(func(account string) error {
		dynamostore.Enlist(ctx).UpdateValue("add", accounts, map[string]string{"id": account},
			"ADD balance :one", dynamostore.Args{":one": 1})
		return nil
	})
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	out := events.APIGatewayV2HTTPResponse{
		StatusCode: c.Script.Status,
		Headers:    map[string]string{"Location": driver.Location},
		Body:       string(c.Script.Body),
	}
	if c.Script.Binary {
		out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(c.Script.Body), true
	}
	return out, nil
}

// answerOf returns the answer for the function's result. A client of API Gateway receives the same
// response, or a 500 if the function returned an error.
func answerOf(out events.APIGatewayV2HTTPResponse, err error) driver.Answer {
	if err != nil {
		if errors.Is(err, driver.ErrScripted) {
			return driver.Answer{Error: driver.ScriptedError}
		}
		return driver.Answer{Error: err.Error()}
	}
	body := []byte(out.Body)
	if out.IsBase64Encoded {
		if body, err = base64.StdEncoding.DecodeString(out.Body); err != nil {
			return driver.Answer{Error: err.Error()}
		}
	}
	if !out.IsBase64Encoded && !utf8.Valid(body) {
		return driver.Answer{Error: "a text body that is no UTF-8"}
	}
	return driver.Answer{Status: out.StatusCode, Location: out.Headers["Location"], Body: body}
}
