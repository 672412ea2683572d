//go:build !race

package dynamostore

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// The test limits the allocations of one request. For comparison: the SDK's signer alone makes 48
// allocations, and its client 300 more. The race detector would add its own.
func TestTheDirectTransportAllocatesLittle(t *testing.T) {
	const most = 29
	client, _ := inMemory()
	s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = doFunc(func(r *http.Request) (*http.Response, error) { return good(r, nil) })
	}), "test")
	if which, why := s.Transport(); which != TransportDirect {
		t.Fatal(why)
	}
	n := testing.AllocsPerRun(200, func() {
		if _, err := s.Acquire(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	})
	if n > most {
		t.Errorf("an acquire takes %v allocations; want at most %d", n, most)
	}
}
