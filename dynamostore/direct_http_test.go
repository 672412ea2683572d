package dynamostore

import (
	"bytes"
	"context"
	"fmt"
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

// Real connections fail in several ways. Both transports judge them alike, and the server gets the
// same number of requests.
func TestX8_BothTransportsJudgeRealConnectionsAlike(t *testing.T) {
	cutOff := func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close() // cutting the connection off is what the test is about
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

// withoutPorts removes the digits from an error text, because the port of a test's server differs
// each time.
func withoutPorts(text string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// A response may arrive before net/http has finished sending the request. It must be read like any
// other response. (The SDK closes the request's body once it has the header of the response. With
// the SDK's own body, net/http takes that for a failure and closes the connection in the middle of
// the response: aws-sdk-go-v2, issue 2737.)
func TestX8_AnAnswerSoonerThanTheEndOfTheRequestIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		unwritten bool // whether the body is still unwritten when the response arrives; otherwise it is written, but net/http has not yet noticed its end
		ask       func(context.Context, *Store) error
	}{
		"at its end": {false, func(ctx context.Context, s *Store) error {
			record, err := s.Get(ctx, claim.ID, claim.Now)
			if err == nil && record.State != lambdaidem.Completed {
				err = fmt.Errorf("got %+v; want the record that the answer holds", record)
			}
			return err
		}},
		"in its middle": {true, func(ctx context.Context, s *Store) error {
			large := claim
			large.Fingerprint = strings.Repeat("x", 200<<10)
			_, err := s.Acquire(ctx, large)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, by func(*Options)) {
				users := &soon{unwritten: c.unwritten, written: make(chan struct{}), rest: make(chan struct{}), closed: make(chan struct{})}
				read := make(chan int64, 1)
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					text := goodBody(r)
					_ = http.NewResponseController(w).EnableFullDuplex() // allows the response to begin before the request has ended
					_, _ = io.WriteString(w, text[:1])
					_ = http.NewResponseController(w).Flush()
					<-users.rest
					n, _ := io.Copy(io.Discard, r.Body)
					read <- n - r.ContentLength
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
				if err := c.ask(t.Context(), s); err != nil {
					t.Error(err)
				}
				if missing := <-read; missing != 0 {
					t.Errorf("the server got %d bytes of the body too few", -missing)
				}
			})
		})
	}
}

// soon is an HTTP client with one connection. It delays the end of the request: the body counts as
// written, or with unwritten is written, only once somebody reads the response's body. That read
// continues when net/http has finished the request, or has closed the connection.
type soon struct {
	http.Client
	unwritten             bool
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
	if c.of.unwritten && !bytes.HasPrefix(p, []byte("POST ")) { // delay everything but the header and the part of the body that is sent with it
		<-c.of.written
	}
	n, err := c.Conn.Write(p)
	if bytes.HasSuffix(p, []byte("}")) { // the end of the body
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
