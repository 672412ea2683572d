package lambdaidem

import "context"

// again returns the replay of the stored response for the request r. It adds the headers in
// Options.ReplayMarks to the stored response, unless a guarded handler made the request. Then it
// lets Options.OnReplay change the response.
func (w *httpWork) again(ctx context.Context, r *Request) *Response {
	g, resp := w.g, w.replayed
	if resp.Header == nil {
		resp.Header = make(map[string][]string) // for the hook to write to
	}
	if attemptOf(ctx) == nil { // a guarded handler that made the request may pass on the response, which is no replay to its own client
		for _, m := range g.opts.ReplayMarks {
			resp.Set(m.Name, m.Value)
		}
	}
	if g.opts.OnReplay != nil {
		g.opts.OnReplay(ctx, r, resp)
	}
	return resp
}
