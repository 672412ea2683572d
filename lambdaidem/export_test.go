package lambdaidem

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// BareReplay is what every replay of the answer costs at least. needed is the
// request's fingerprint, its record's id and the answer decoded; events is what
// reading the request's event, asking who sent it and writing the answer's event
// cost on top of that.
func BareReplay(in events.APIGatewayV2HTTPRequest, status int, body string) (needed, events func()) {
	g := New(struct{ Store }{})
	ctx := context.Background()
	req := httpAPI{}.request(in)
	who, refusal := g.identify(ctx, req)
	if refusal != nil {
		panic(refusal)
	}
	stored, err := encodeAnswer(&Response{Status: status, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: body})
	if err != nil {
		panic(err)
	}
	var resp *Response
	needed = func() {
		if len(g.fingerprint(req)) == 0 || len(who.id()) == 0 {
			panic("there is no hash")
		}
		if resp, err = decodeAnswer(stored); err != nil {
			panic(err)
		}
	}
	events = func() {
		asked := httpAPI{}.request(in)
		if _, refusal := g.identify(ctx, asked); g.bypasses(ctx, asked) || refusal != nil {
			panic("the request is not guarded")
		}
		if out := (httpAPI{}).event(in, resp); out.StatusCode != status {
			panic("it is another answer")
		}
	}
	return needed, events
}
