package lambdaidem

import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/events"
)

// APIGatewayWebSocketHandler is a handler of the events of an API Gateway WebSocket API.
type APIGatewayWebSocketHandler = func(context.Context, events.APIGatewayWebsocketProxyRequest) (events.APIGatewayProxyResponse, error)

// APIGatewayWebSocket guards a handler of the messages that clients send over an API Gateway
// WebSocket API. The route key is the route. Clients connect and disconnect unguarded: these
// events carry no operation of the client's. Options.Methods does not matter.
//
// A message has no headers, so its key is in its body. By default, the key is the member
// [MessageKey] of the body, which must then be a JSON object. Options.Key returns the key instead,
// if it is set. The gateway's own ids, such as the messageId, are no keys: a message that a client
// sends again has new ones.
//
// The caller is the one that the authorizer of $connect has named, because the gateway repeats its
// result in the events of all messages of the connection. The connection names no caller: a
// client that connects again to retry has another connection.
//
// API Gateway passes a response to the client only if the route has a route response (API Gateway,
// "Set up route responses for WebSocket APIs"). Without one, the client receives no replay and no
// refusal by the guard either. With one, it receives the body. Options.OnReplay and
// Options.OnOwnAnswer can put a mark into the body, because no header reaches the client.
func (g *Guard) APIGatewayWebSocket(h APIGatewayWebSocketHandler) APIGatewayWebSocketHandler {
	g = g.With(func(o *Options) {
		o.Methods = []string{webSocketMessage}
		if o.Key == nil {
			o.Key = keyInBody
		}
	})
	return guardHTTP(g, webSocketAPI{}, h)
}

// webSocketMessage is the method of a message. It distinguishes the routes of a WebSocket API from
// those of other APIs.
const webSocketMessage = "MESSAGE"

// keyInBody returns the idempotency key that a client put into a message. It is the default
// Options.Key of a WebSocket API.
func keyInBody(_ context.Context, r *Request) (string, error) {
	k := keyInJSON(r.Body)
	if k.given && k.err == nil && k.text == "" {
		return "", errors.New("it is empty")
	}
	return k.text, k.err
}

type webSocketAPI struct{}

// request converts an event. The method is the type of the event, except that an event of an
// unknown type counts as a message, so that it is guarded. The route key of an event does not
// show its type: a client can name the route $connect in a message.
func (webSocketAPI) request(e *events.APIGatewayWebsocketProxyRequest, r *Request) {
	about := &e.RequestContext
	*r = Request{
		Method:   webSocketMessage,
		Path:     about.RouteKey,
		Route:    about.RouteKey,
		headers:  headers{multi: e.MultiValueHeaders, single: e.Headers},
		nHeaders: max(len(e.Headers), len(e.MultiValueHeaders)),
	}
	if about.EventType == "CONNECT" || about.EventType == "DISCONNECT" {
		r.Method = about.EventType
	}
	r.setBody(e.Body, e.IsBase64Encoded)
	authorizer, _ := about.Authorizer.(map[string]any)
	r.Principal, r.anonymous = restCaller(&events.APIGatewayProxyRequestContext{Authorizer: authorizer, Identity: about.Identity}).principal()
}

func (webSocketAPI) response(_ *events.APIGatewayWebsocketProxyRequest, r events.APIGatewayProxyResponse) Response {
	return restAPI{}.response(nil, r)
}

func (webSocketAPI) event(_ *events.APIGatewayWebsocketProxyRequest, r *Response) events.APIGatewayProxyResponse {
	return restAPI{}.event(nil, r)
}
