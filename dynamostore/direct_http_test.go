package dynamostore

import (
	"io"
	"net/http"
	"net/http/httptest"
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
