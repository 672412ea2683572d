package commands

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// desk is a table with a guard that uses it, and methods that run idem on it like an operator.
type desk struct {
	t      *testing.T
	client *dynamodb.Client
	table  string
	store  *dynamostore.Store
	guard  *lambdaidem.Guard
	clock  time.Time // the guard's clock
	runs   int
}

func openDesk(t *testing.T) *desk {
	t.Helper()
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	d := &desk{t: t, client: server.Client(), table: "test-" + rand.Text(), clock: time.Now().Add(-10 * time.Minute)}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": server.Endpoint(), "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none", "AWS_PROFILE": "", "IDEM_TABLE": d.table, "IDEM_OPERATOR": "alice",
	} {
		t.Setenv(name, value)
	}
	if err := dynamostore.CreateTable(t.Context(), d.client, d.table); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := d.client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: aws.String(d.table)}); err != nil {
			t.Error(err)
		}
	})
	d.store = dynamostore.New(d.client, d.table, func(o *dynamostore.Options) { o.AttemptTimeout = time.Minute })
	d.guard = lambdaidem.New(d.store, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Clock = "shop", lambdaidem.Discard, d.now
	})
	return d
}

func (d *desk) now() time.Time { return d.clock }

// got is the result of a command: its exit code and output.
type got struct {
	code     int
	out, err string
}

// idem runs the command without a terminal, so that it can't ask for confirmation.
func (d *desk) idem(args ...string) got { return d.at(Streams{In: strings.NewReader("")}, args...) }

// typing runs the command at a terminal at which a person types the text.
func (d *desk) typing(text string, args ...string) got {
	return d.at(Streams{In: strings.NewReader(text), Asks: true}, args...)
}

func (d *desk) at(s Streams, args ...string) got {
	d.t.Helper()
	var out, err bytes.Buffer
	s.Out, s.Err = &out, &err
	code := Run(d.t.Context(), args, s)
	return got{code, out.String(), err.String()}
}

// want fails the test unless the command ended with the exit code and printed all of the texts.
func (g got) want(t *testing.T, code int, says ...string) got {
	t.Helper()
	if g.code != code {
		t.Fatalf("exit code %d; want %d\n%s%s", g.code, code, g.out, g.err)
	}
	for _, s := range says {
		if !strings.Contains(g.out+g.err, s) {
			t.Errorf("it doesn't say %q:\n%s%s", s, g.out, g.err)
		}
	}
	return g
}

// into decodes the command's JSON output into v.
func (g got) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(g.out), v); err != nil {
		t.Fatalf("%v in\n%s", err, g.out)
	}
}

var errLater = errors.New("later")

// pay sends a guarded HTTP request with the key, whose handler is end, and returns the response.
func (d *desk) pay(g *lambdaidem.Guard, key string, end func(context.Context) (events.APIGatewayV2HTTPResponse, error)) events.APIGatewayV2HTTPResponse {
	d.t.Helper()
	e := events.APIGatewayV2HTTPRequest{RouteKey: "POST /payments/{id}", RawPath: "/payments/7", Body: `{"amount":5}`,
		Headers: map[string]string{"idempotency-key": key, "content-type": "application/json"}}
	e.RequestContext.HTTP.Method = "POST"
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "https://issuer", "sub": "bob"}},
	}
	resp, err := g.APIGatewayV2(func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		d.runs++
		return end(ctx)
	})(d.t.Context(), e)
	if err != nil && !errors.Is(err, errLater) {
		d.t.Fatal(err)
	}
	return resp
}

func paid(context.Context) (events.APIGatewayV2HTTPResponse, error) {
	return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: `{"id":"p-1"}`, Headers: map[string]string{"Content-Type": "application/json"}}, nil
}

func died(ctx context.Context) (events.APIGatewayV2HTTPResponse, error) {
	_, err := lambdaidem.Step(ctx, "reserve", func(context.Context) (string, error) { return "r-9", nil })
	return events.APIGatewayV2HTTPResponse{}, lambdaidem.Uncertain(errors.Join(errLater, err))
}

// held returns the guard with policy Hold.
func (d *desk) held() *lambdaidem.Guard {
	return d.guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
}

// byKey returns the flags that identify the record of pay's request with the key.
func byKey(key string) []string {
	return []string{"--namespace", "shop", "--route", "POST /payments/{id}", "--caller", "jwt:https://issuer|bob", "--key", key}
}

// view returns the record of pay's request with the key, as show prints it.
func (d *desk) view(key string) recordView {
	d.t.Helper()
	var v recordView
	d.idem(append([]string{"show", "-o", "json"}, byKey(key)...)...).want(d.t, exitDone).into(d.t, &v)
	return v
}

// The Region comes from --region. Otherwise it comes from the environment or from the profile that
// --profile names.
func TestO2_ProfileAndRegion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("[default]\nregion = us-west-1\n[profile night]\nregion = eu-central-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", file)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct {
		connection
		want string
	}{
		{connection{}, "us-west-1"},
		{connection{profile: "night"}, "eu-central-1"},
		{connection{profile: "night", region: "eu-west-3"}, "eu-west-3"},
	} {
		if cfg, err := c.awsConfig(t.Context()); err != nil || cfg.Region != c.want {
			t.Errorf("with the profile %q and the Region %q it is %q, %v; want %q", c.profile, c.region, cfg.Region, err, c.want)
		}
	}
}
