package eventsource

import "github.com/lambdaidem/toolkit/localstack/template"

// room bounds the batches of all queues of one function together, by
// Options.Capacity. A poller takes a place before it receives, since a message that is
// received uses up its visibility timeout.
type room struct {
	places chan struct{} // nil: no bound
	// shared: by several queues. A poller that waited for messages with its place
	// taken would keep the others from theirs.
	shared bool
}

func newRoom(f *template.Function, capacity func(function string) int) *room {
	r := &room{}
	if capacity == nil {
		return r
	}
	if n := capacity(f.LogicalID); n > 0 {
		r.places = make(chan struct{}, n)
	}
	queues := 0
	for _, s := range f.Sources {
		if s.Table == "" {
			queues++
		}
	}
	r.shared = r.places != nil && queues > 1
	return r
}

// take waits for a place. Those who wait have their turns in order.
func (r *room) take() {
	if r.places != nil {
		r.places <- struct{}{}
	}
}

func (r *room) give() {
	if r.places != nil {
		<-r.places
	}
}
