package lambdaidem

import "context"

// codec converts between the HTTP events of one type and the types Request and Response, which are
// the same for all events. A codec does not decide whether a response is stored; Guard.outcomeOf
// does, in the same way for all events. The methods take pointers to events, because events are
// large.
type codec[In, Out any] interface {
	request(*In, *Request)      // fills in a zero Request from the event
	response(*In, Out) Response // converts what the handler returned for the event
	event(*In, *Response) Out   // converts a Response to what the handler would return for the event
}

// guardHTTP wraps a handler of HTTP events of one type. The first caller receives exactly
// what the handler returned. A replay is rebuilt from the stored response.
func guardHTTP[In, Out any](g *Guard, c codec[In, Out], h func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		call := &eventCall[In, Out]{codec: c, handler: h, event: in}
		req := new(Request) // allocated separately from call, because a hook may retain it
		c.request(&call.event, req)
		call.work = httpWork{g: g, served: call}
		var resp *Response
		var err error
		if g.bypasses(ctx, req) {
			resp, err = g.pass(ctx, req, &call.work)
		} else {
			resp, err = g.serve(ctx, req, &call.work)
		}
		if resp != nil {
			return c.event(&call.event, resp), nil
		}
		return call.output, err
	}
}

// eventCall implements the interface "served" for one event: it calls the user's handler with
// the event and keeps the handler's response.
type eventCall[In, Out any] struct {
	work    httpWork
	codec   codec[In, Out]
	handler func(context.Context, In) (Out, error)
	event   In
	output  Out // what the handler returned, or the argument of Answer; zero after forget
}

func (c *eventCall[In, Out]) handle(ctx context.Context) (Response, error) {
	var err error
	if c.output, err = c.handler(ctx, c.event); err != nil {
		return Response{}, err
	}
	return c.codec.response(&c.event, c.output), nil
}

func (c *eventCall[In, Out]) answer(v any) (Response, error) {
	var ok bool
	if c.output, ok = v.(Out); !ok {
		return Response{}, isNotTheAnswer[Out](v)
	}
	return c.codec.response(&c.event, c.output), nil
}

func (c *eventCall[In, Out]) forget() { c.output = *new(Out) }
