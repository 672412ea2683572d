package dynamostore

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// X8 over real connections: what a server does to them is judged alike, and the
// request reaches it as often.
func TestX8_BothTransportsJudgeRealConnectionsAlike(t *testing.T) {
	cutOff := func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close() // it is what the test is about
	}
	for _, c := range []struct {
		name       string
		handle     func(w http.ResponseWriter, r *http.Request, n int64)
		reason     lambdaidem.Reason
		notApplied bool
		requests   int64
	}{
		{"closed once the request is read", func(w http.ResponseWriter, _ *http.Request, _ int64) { cutOff(w) }, lambdaidem.ReasonUnreachable, false, 3},
		{"closed in the answer", func(w http.ResponseWriter, _ *http.Request, _ int64) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"Attributes":{`)
			_ = http.NewResponseController(w).Flush()
			cutOff(w)
		}, lambdaidem.ReasonUnknown, false, 3},
		{"closed, and then throttled", func(w http.ResponseWriter, _ *http.Request, n int64) {
			if n == 1 {
				cutOff(w)
				return
			}
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}`)
		}, lambdaidem.ReasonThrottled, false, 3},
		{"redirected", func(w http.ResponseWriter, r *http.Request, _ int64) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, lambdaidem.ReasonUnknown, false, 1},
		{"good at last", func(w http.ResponseWriter, _ *http.Request, n int64) {
			if n < 3 {
				cutOff(w)
				return
			}
			_, _ = io.WriteString(w, `{}`)
		}, "", false, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := map[Transport]string{}
			both(t, func(t *testing.T, by func(*Options)) {
				var requests atomic.Int64
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					c.handle(w, r, requests.Add(1))
				}))
				t.Cleanup(server.Close)
				users := awshttp.NewBuildableClient()
				client, _ := inMemory()
				s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
					o.HTTPClient, o.BaseEndpoint = users, aws.String(server.URL)
				}), "test", quick, patient, by)
				t.Cleanup(users.GetTransport().CloseIdleConnections)
				_, err := s.Acquire(t.Context(), claim)
				if n := requests.Load(); n != c.requests {
					t.Errorf("%d requests; want %d", n, c.requests)
				}
				which, _ := s.Transport()
				if err == nil {
					if c.reason != "" || !strings.HasPrefix(c.name, "good") {
						t.Error("it succeeded")
					}
					return
				}
				wantStoreError(t, err, opAcquire, c.reason, c.notApplied)
				said[which] = strings.ReplaceAll(withoutPorts(err.Error()), server.URL, "")
			})
			if said[TransportSDK] != said[TransportDirect] {
				t.Errorf("by the SDK\n%s\nand directly\n%s", said[TransportSDK], said[TransportDirect])
			}
		})
	}
}

// withoutPorts takes the digits out of an error, which are of a test's own server.
func withoutPorts(text string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// X8: an answer that comes before net/http has seen that the request's body is at
// its end is read like any other. (The SDK closes that body once the answer's header
// is there, and then its body reports an error to net/http, which closes the
// connection in the middle of the answer: aws-sdk-go-v2, issue 2737.)
func TestX8_AnAnswerSoonerThanTheEndOfTheRequestIsRead(t *testing.T) {
	both(t, func(t *testing.T, by func(*Options)) {
		users := &soon{written: make(chan struct{}), rest: make(chan struct{}), closed: make(chan struct{})}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			text := goodBody(r)
			_, _ = io.WriteString(w, text[:1])
			_ = http.NewResponseController(w).Flush()
			<-users.rest
			_, _ = io.WriteString(w, text[1:])
		}))
		t.Cleanup(server.Close)
		transport := &http.Transport{DialContext: users.dial}
		t.Cleanup(transport.CloseIdleConnections)
		users.Transport = transport
		client, _ := inMemory()
		s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
			o.HTTPClient, o.BaseEndpoint = users, aws.String(server.URL)
		}), "test", patient, func(o *Options) { o.Attempts = 1 }, by)
		record, err := s.Get(t.Context(), claim.ID, claim.Now)
		if err != nil {
			t.Fatal(err)
		}
		if record.State != lambdaidem.Completed {
			t.Errorf("got %+v; want the record that the answer holds", record)
		}
	})
}

// soon is an HTTP client over one connection. What was written last of a request
// counts as written once the answer's body is asked for, which goes on when net/http
// is done with the request.
type soon struct {
	http.Client
	written, rest, closed chan struct{}
}

func (s *soon) Do(r *http.Request) (*http.Response, error) {
	wrote := make(chan error, 1)
	resp, err := s.Client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { wrote <- info.Err },
	})))
	if err == nil {
		resp.Body = &soonBody{ReadCloser: resp.Body, ask: func() {
			close(s.written)
			if err := <-wrote; err != nil {
				<-s.closed
			}
			close(s.rest)
		}}
	}
	return resp, err
}

func (s *soon) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &soonConn{conn, s}, err
}

type soonConn struct {
	net.Conn
	of *soon
}

func (c *soonConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if bytes.HasSuffix(p, []byte("}")) { // the body's end
		<-c.of.written
	}
	return n, err
}

func (c *soonConn) Close() error {
	close(c.of.closed)
	return c.Conn.Close()
}

type soonBody struct {
	io.ReadCloser
	ask func()
}

func (b *soonBody) Read(p []byte) (int, error) {
	if b.ask != nil {
		b.ask()
		b.ask = nil
	}
	return b.ReadCloser.Read(p)
}
