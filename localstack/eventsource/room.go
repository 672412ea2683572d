package eventsource

import "github.com/lambdaidem/toolkit/localstack/template"

// room limits the number of batches in flight for all queues of one function together
// (Options.Capacity). A poller takes a place before it receives messages, because the visibility
// timeout of a message begins when it is received.
type room struct {
	places chan struct{} // holds one element for each taken place; nil if there is no limit
	// shared reports whether the function has several queues and a limit. A poller must then not
	// hold a place while it waits for messages, because the other pollers could need the place.
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

// take waits for a free place and takes it. Pollers get places in the order in which they asked.
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
