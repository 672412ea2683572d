package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyendpoints "github.com/aws/smithy-go/endpoints"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// overTLS returns a client whose requests go to a TLS server that responds to all of them with {}.
// It also returns the numbers of connections and the requests that the server has received.
func overTLS(t *testing.T) (client *dynamodb.Client, connections *atomic.Int32, requests *[]string) {
	t.Helper()
	connections, requests = new(atomic.Int32), new([]string)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*requests = append(*requests, strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")+string(body))
		_, _ = io.WriteString(w, "{}")
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	memory, _ := inMemory()
	return dynamodb.New(memory.Options(), func(o *dynamodb.Options) {
		o.BaseEndpoint = aws.String(server.URL)
		o.HTTPClient = server.Client()
	}), connections, requests
}

func TestWarm_TheFirstRequestNeedsNoNewConnection(t *testing.T) {
	client, connections, requests := overTLS(t)
	var asked atomic.Int32
	client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.Credentials = aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			asked.Add(1)
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}))
	})
	s := New(client, "test")
	warmed := s.Warm(t.Context())
	if which, _ := s.Transport(); warmed.Err != nil || warmed.Took <= 0 || warmed.Took > warmTimeout || warmed.Transport != which {
		t.Errorf("Warm: %+v", warmed)
	}
	if connections.Load() != 1 || asked.Load() != 1 {
		t.Fatalf("Warm opened %d connections and asked for credentials %d times; want 1 and 1", connections.Load(), asked.Load())
	}
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Error(err)
	}
	if connections.Load() != 1 || asked.Load() != 1 {
		t.Errorf("the first request: %d connections, %d times credentials in all; want 1 and 1", connections.Load(), asked.Load())
	}
	if len(*requests) != 2 || !strings.HasPrefix((*requests)[0], `GetItem{"TableName":"test","Key":{"id":{"S":"`+probeID+`"}}`) || !strings.HasPrefix((*requests)[1], "PutItem") {
		t.Errorf("requests: %q; want one GetItem of %s, and the PutItem", *requests, probeID)
	}
}

func TestWarm_GetsTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		current func(context.Context) (Key, error)
		want    string // part of Warmed.Err
	}{
		"a key":    {func(context.Context) (Key, error) { return keyOf("k1"), nil }, ""},
		"no key":   {func(context.Context) (Key, error) { return Key{}, errors.New("KMS is down") }, "KMS is down"},
		"a panic":  {func(context.Context) (Key, error) { panic("a nil client") }, "panic: a nil client"},
		"deaf":     {nil, "goes on in the background"}, // it ignores its context
		"too slow": {func(ctx context.Context) (Key, error) { <-ctx.Done(); return Key{}, context.Cause(ctx) }, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, w := inMemory(succeed, succeed)
				var calls atomic.Int32
				over := make(chan struct{})
				defer close(over)
				if c.current == nil {
					c.current = func(context.Context) (Key, error) { <-over; return Key{}, nil }
				}
				s := New(client, "test", func(o *Options) {
					o.Encryption.Current = func(ctx context.Context) (Key, error) { calls.Add(1); return c.current(ctx) }
					o.Encryption.Find = func(context.Context, string) (Key, error) { return keyOf("k1"), nil }
				})
				warmed := s.Warm(t.Context())
				if (warmed.Err == nil) != (c.want == "") || warmed.Err != nil && !strings.Contains(warmed.Err.Error(), c.want) {
					t.Errorf("Warm: %v; want %q", warmed.Err, c.want)
				}
				if w.trips() != 1 || calls.Load() != 1 || warmed.Took > warmTimeout+100*time.Millisecond {
					t.Errorf("%d requests, %d calls of Current, %v; want 1, 1 and at most %v", w.trips(), calls.Load(), warmed.Took, warmTimeout)
				}
				if c.want != "" {
					return
				}
				if _, err := s.Acquire(t.Context(), claim); err != nil || calls.Load() != 1 {
					t.Errorf("the first request: %v, %d calls of Current; want the cached key", err, calls.Load())
				}
			})
		})
	}
}

func TestWarm_NeverPreventsAStart(t *testing.T) {
	panics := func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) { panic("a nil client") }
	for name, c := range map[string]struct {
		faults []fault
		trips  int
		took   time.Duration // the maximum of Warmed.Took
		want   string        // part of Warmed.Err
	}{
		"unreachable":       {[]fault{refuseConnection, refuseConnection, refuseConnection}, 3, warmTimeout, "refused"},
		"no reply":          {[]fault{hang, hang, hang}, 1, warmTimeout + 100*time.Millisecond, "deadline exceeded"},
		"no permission":     {[]fault{refuseAs("AccessDeniedException")}, 1, 0, "AccessDenied"},
		"the client panics": {[]fault{panics}, 1, 0, "panic: a nil client"},
		"no table":          {[]fault{refuseAs("ResourceNotFoundException")}, 1, 0, "ResourceNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, w := inMemory(c.faults...)
				warmed := New(client, "test").Warm(t.Context())
				if warmed.Err == nil || !strings.Contains(warmed.Err.Error(), c.want) || warmed.Took > c.took || w.trips() != c.trips {
					t.Errorf("Warm: %v after %v and %d requests; want %q within %v after %d", warmed.Err, warmed.Took, w.trips(), c.want, c.took, c.trips)
				}
			})
		})
	}
	t.Run("the caller gives up", func(t *testing.T) {
		client, w := inMemory()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if warmed := New(client, "test").Warm(ended); warmed.Err == nil || w.trips() > 0 {
			t.Errorf("Warm: %v, %d requests; want an error and none", warmed.Err, w.trips())
		}
	})
}

// A service that runs without its guard may have no table.
func TestWarm_SendsNothingIfTheGuardIsOff(t *testing.T) {
	for value, trips := range map[string]int{"true": 0, "1": 0, "false": 1, "": 1} {
		t.Setenv(lambdaidem.SwitchOff, value)
		client, w := inMemory(succeed)
		if warmed := New(client, "test").Warm(t.Context()); w.trips() != trips || warmed.Err != nil {
			t.Errorf("%s=%s: %d requests, %v; want %d", lambdaidem.SwitchOff, value, w.trips(), warmed.Err, trips)
		}
	}
}

func TestWarm_IsLoggedAsAGroup(t *testing.T) {
	for _, c := range []struct {
		of   Warmed
		want string
	}{
		{Warmed{Took: 31_500 * time.Microsecond, Transport: TransportDirect}, `"store":{"took_ms":31,"transport":"direct"}`},
		{Warmed{Transport: TransportSDK, Err: errors.New("no table")}, `"store":{"took_ms":0,"transport":"sdk","error":"no table"}`},
	} {
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, nil)).Info("ready", "store", c.of)
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("logged %s; want %s", out.String(), c.want)
		}
	}
}

// slowResolver is an endpoint resolver of the application that ignores its context.
type slowResolver struct{ takes time.Duration }

func (r slowResolver) ResolveEndpoint(ctx context.Context, p dynamodb.EndpointParameters) (smithyendpoints.Endpoint, error) {
	time.Sleep(r.takes)
	return dynamodb.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, p)
}

func TestWarm_ReturnsThoughTheEndpointIsNotResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, _ := inMemory()
		client := dynamodb.New(memory.Options(), func(o *dynamodb.Options) { o.EndpointResolverV2 = slowResolver{4 * time.Second} })
		s := New(client, "test", func(o *Options) { o.Transport = TransportDirect })
		start := time.Now()
		warmed := s.Warm(t.Context())
		if took := time.Since(start); took > warmTimeout+100*time.Millisecond || !errors.Is(warmed.Err, context.DeadlineExceeded) {
			t.Errorf("Warm returned after %v: %+v", took, warmed)
		}
		time.Sleep(time.Minute) // until the resolver has returned
	})
}
