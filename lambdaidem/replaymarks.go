package lambdaidem

import "context"

// again makes a replay from the stored response. It adds Options.ReplayMarks, and then lets
// Options.OnReplay change the response.
func (w *httpWork) again(ctx context.Context, r *Request) *Response {
	g, resp := w.g, w.replayed
	if resp.Header == nil {
		resp.Header = make(map[string][]string) // for the hook to write to
	}
	for _, m := range g.opts.ReplayMarks {
		resp.Set(m.Name, m.Value)
	}
	if g.opts.OnReplay != nil {
		g.opts.OnReplay(ctx, r, resp)
	}
	return resp
}
