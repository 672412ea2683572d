package proxy

import (
	"net/http"
	"time"
)

// Pass lets a call through. Where the database can't be reached, neither can
// the proxy: the connection is cut.
func Pass(c *Call) {
	reply, err := c.Deliver()
	if err != nil {
		c.Cut()
		return
	}
	c.Answer(reply)
}

// Slow returns a fault that lets a call through with a pause before it takes
// effect and one after.
func Slow(before, after time.Duration) Fault {
	return func(c *Call) {
		c.pause(before)
		reply, err := c.Deliver()
		if err != nil {
			c.Cut()
			return
		}
		c.pause(after)
		c.Answer(reply)
	}
}

// pause waits, or returns at once when the proxy closes.
func (c *Call) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.proxy.ctx.Done():
	}
}

// LoseRequest cuts the connection; the database never sees the request.
func LoseRequest(c *Call) { c.Cut() }

// Swallow loses the request like a network that drops packets: the caller hears nothing until
// its own timeout ends. The database never sees the request.
func Swallow(c *Call) {
	c.tellCut()
	select {
	case <-c.gone.Done():
	case <-c.proxy.ctx.Done():
	}
	c.reset()
}

// LoseReply cuts the connection when the request has taken effect.
func LoseReply(c *Call) {
	_, _ = c.Deliver() // lost with its error
	c.Cut()
}

// CutReplyShort cuts the connection in the middle of the reply.
func CutReplyShort(c *Call) {
	reply, err := c.Deliver()
	if err != nil {
		c.Cut()
		return
	}
	c.CutShort(reply)
}

// FailAfterWrite answers 500 when the request has taken effect, as DynamoDB
// may ("Error handling with DynamoDB": the operation may have succeeded).
func FailAfterWrite(c *Call) {
	_, _ = c.Deliver()
	c.Answer(failure(http.StatusInternalServerError, "InternalServerError"))
}

// Throttle refuses a request that is never delivered.
func Throttle(c *Call) {
	c.Answer(failure(http.StatusBadRequest, "ProvisionedThroughputExceededException"))
}

// failure returns an error as DynamoDB writes it (AWS JSON 1.0 protocol).
func failure(status int, kind string) Reply {
	return Reply{
		Status: status,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#` + kind + `","message":"made by the fault proxy"}`),
	}
}

// Gate holds one call at a known point until it is told how to go on.
type Gate struct {
	held    Fault // the part before the point
	reached chan Request
	goOn    chan Fault
	ended   chan struct{}
	reply   Reply // of a call whose reply is held
	err     error
}

// HoldRequest returns a gate that holds a request before the database sees it.
func HoldRequest() *Gate { return newGate() }

// HoldReply returns a gate that holds the reply to a request that the database
// has carried out.
func HoldReply() *Gate {
	g := newGate()
	g.held = func(c *Call) { g.reply, g.err = c.Deliver() }
	return g
}

func newGate() *Gate {
	return &Gate{reached: make(chan Request, 1), goOn: make(chan Fault, 1), ended: make(chan struct{})}
}

// Fault is the fault to give to one call, and to one only.
func (g *Gate) Fault(c *Call) {
	defer close(g.ended)
	if g.held != nil {
		g.held(c)
	}
	g.reached <- c.Request
	select {
	case next := <-g.goOn:
		next(c)
	case <-c.proxy.ctx.Done():
		c.Cut()
	}
}

// Reached gives the call when it is at the gate.
func (g *Gate) Reached() <-chan Request { return g.reached }

// Drop cuts the connection: a request that was held is lost, a reply too.
func (g *Gate) Drop() { g.release(LoseRequest) }

// Open lets the call go on, though its caller may have gone. When it returns,
// the database has carried the request out; the reply tells how.
func (g *Gate) Open() (Reply, error) {
	g.release(func(c *Call) {
		if g.held == nil {
			g.reply, g.err = c.Deliver()
		}
		if g.err != nil {
			c.Cut()
			return
		}
		c.Answer(g.reply)
	})
	return g.reply, g.err
}

func (g *Gate) release(next Fault) {
	g.goOn <- next
	<-g.ended
}
