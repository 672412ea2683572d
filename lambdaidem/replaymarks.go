package lambdaidem

import "context"

// defaultReplayMark is the name of the header that Options.ReplayMarks adds by default.
const defaultReplayMark = "X-Idempotency-Replayed"

// again returns the replay of the stored response for the request r. It adds the headers in
// Options.ReplayMarks to the response, unless r is an inner call, which another guarded handler
// makes while it runs. Then again lets Options.OnReplay change the response.
func (w *httpWork) again(ctx context.Context, r *Request) *Response {
	g, resp := w.g, w.replayed
	if resp.Header == nil {
		resp.Header = make(map[string][]string) // for the hook to write to
	}
	if attemptOf(ctx) == nil { // the handler that makes an inner call may pass on the response, which is not a replay for its own client
		for _, m := range g.opts.ReplayMarks {
			resp.Set(m.Name, m.Value)
		}
	}
	if g.opts.OnReplay != nil {
		g.opts.OnReplay(ctx, r, resp)
	}
	return resp
}
