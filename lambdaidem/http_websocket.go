package lambdaidem

import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/events"
)

// APIGatewayWebSocketHandler is a handler of the events of an API Gateway WebSocket API.
type APIGatewayWebSocketHandler = func(context.Context, events.APIGatewayWebsocketProxyRequest) (events.APIGatewayProxyResponse, error)

// APIGatewayWebSocket guards a handler of the messages that clients send over an API Gateway
// WebSocket API. The route key of a message is a part of its record's identity, like the route of
// an HTTP request. Events of type CONNECT or DISCONNECT run unguarded. Options.Methods is ignored.
//
// By default, the key is the member [MessageKey] of the body, which must then be a JSON object. If
// Options.Key is set, it returns the key instead. The gateway's own ids, such as the messageId,
// can't serve as keys, because they change when a client sends a message again.
//
// The caller of a message is the one that the authorizer of the $connect route has identified. The
// connection's id does not identify the caller, because a client that connects again gets another
// id.
//
// API Gateway passes a response to the client only if the route has a route response (API Gateway,
// "Set up route responses for WebSocket APIs"). Without one, the client receives neither replays
// nor refusals by the guard. With one, the client receives the body, but no headers. To mark a
// replay or a refusal, change the body in Options.OnReplay or Options.OnOwnAnswer.
func (g *Guard) APIGatewayWebSocket(h APIGatewayWebSocketHandler) APIGatewayWebSocketHandler {
	g = g.With(func(o *Options) {
		o.Methods = []string{webSocketMessage}
		if o.Key == nil {
			o.Key = keyInBody
		}
	})
	return guardHTTP(g, webSocketAPI{}, h)
}

// webSocketMessage is the Request.Method of a WebSocket message, which has no HTTP method. It
// distinguishes the routes of a WebSocket API from those of other APIs.
const webSocketMessage = "MESSAGE"

// keyInBody returns the idempotency key of a message, the member MessageKey of its JSON body, or ""
// if there is none. It returns an error if the key is empty or invalid. It is the default
// Options.Key of a WebSocket API.
func keyInBody(_ context.Context, r *Request) (string, error) {
	k := keyInJSON(r.Body)
	if k.isSet && k.err == nil && k.text == "" {
		return "", errors.New("it is empty")
	}
	return k.text, k.err
}

type webSocketAPI struct{}

// request converts an event. Request.Method is the event's type: CONNECT, DISCONNECT or MESSAGE. An
// event of an unknown type counts as a message, so that it is guarded. The route key can't replace
// the type, because a client can send a message with the route key $connect.
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
