package deliveries

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// process is one invocation in a process of its own.
type process struct {
	w      *world
	number uint64
	ctx    context.Context
	dead   chan struct{} // closed when the process is killed

	mu   sync.Mutex
	rng  *rand.Rand
	gone bool
}

// invoke starts a process for one invocation, which do runs. It returns the IDs of the messages
// that do reported as failed. answered is false if the process was killed or do returned an error.
func (w *world) invoke(do func(*process) ([]string, error)) (failed []string, answered bool) {
	w.mu.Lock()
	w.number++
	p := &process{w: w, number: w.number, dead: make(chan struct{}), rng: rand.New(rand.NewPCG(w.number, w.rng.Uint64()))}
	w.report.Deliveries++
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), w.plan.Timeout)
	defer cancel()
	p.ctx = ctx
	timeout := time.AfterFunc(w.plan.Timeout+time.Millisecond, p.kill)
	defer timeout.Stop()
	if w.chance(w.plan.Kills) {
		at := time.AfterFunc(time.Duration(p.draw(int64(w.plan.Timeout))), p.kill)
		defer at.Stop()
	}
	type answer struct {
		failed []string
		err    error
	}
	got := make(chan answer, 1)
	go func() {
		a := answer{err: errGone}
		defer func() { got <- a }()
		a.failed, a.err = do(p)
	}()
	a := <-got // the goroutine of a killed process ends at once
	select {
	case <-p.dead:
		return nil, false
	default:
		return a.failed, a.err == nil
	}
}

var errGone = errors.New("the process is gone")

// kill ends the process as SIGKILL does.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		p.gone = true
		close(p.dead)
		p.w.mu.Lock()
		p.w.report.Kills++
		p.w.mu.Unlock()
	}
}

// exitIfKilled ends the goroutine of a process that was killed.
func (p *process) exitIfKilled() {
	select {
	case <-p.dead:
		runtime.Goexit()
	default:
	}
}

func (p *process) draw(n int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.Int64N(n)
}

// Read gives the guard its tokens and jitter.
func (p *process) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var eight [8]byte
	for i := 0; i < len(b); i += len(eight) {
		binary.LittleEndian.PutUint64(eight[:], p.rng.Uint64())
		copy(b[i:], eight[:])
	}
	return len(b), nil
}

// sleep waits until d has passed or ctx ends, and reports whether ctx is still alive. It does not
// return if the process is killed.
func (p *process) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-p.dead:
	}
	p.exitIfKilled()
	return ctx.Err() == nil
}

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// Do implements aws.HTTPClient. It sends a request to the database over a network that may lose or
// delay the request or its reply.
func (p *process) Do(req *http.Request) (*http.Response, error) {
	p.exitIfKilled()
	op, body, err := memdynamo.Request(req)
	if err != nil {
		return nil, err
	}
	reply := func(status int, header http.Header, out []byte) (*http.Response, error) {
		if !p.sleep(req.Context(), time.Duration(1+p.draw(int64(10*time.Millisecond)))) {
			return nil, req.Context().Err()
		}
		return memdynamo.Response(req, status, header, out), nil
	}
	fate := ""
	if p.w.chance(p.w.plan.Lossy) {
		fate = fates[p.draw(int64(len(fates)))]
		p.w.mu.Lock()
		p.w.report.Faults[fate]++
		p.w.mu.Unlock()
	}
	if !p.sleep(req.Context(), time.Duration(1+p.draw(int64(10*time.Millisecond)))) {
		return nil, req.Context().Err()
	}
	switch fate {
	case requestLost:
		return nil, errReset
	case requestLate:
		p.w.late.Go(func() {
			time.Sleep(time.Duration(p.draw(int64(20 * time.Second))))
			p.w.db.Serve(op, body)
		})
		return nil, errReset
	case replyLost:
		p.w.db.Serve(op, body)
		return nil, errReset
	case failBefore:
		return reply(memdynamo.Error(memdynamo.InternalServerError, "Internal server error"))
	case failAfter:
		p.w.db.Serve(op, body)
		return reply(memdynamo.Error(memdynamo.InternalServerError, "Internal server error"))
	case throttled:
		return reply(memdynamo.Error(memdynamo.Throttling, "Rate of requests exceeds the allowed throughput."))
	case killedAfter:
		p.w.db.Serve(op, body)
		p.kill()
		p.exitIfKilled()
	}
	return reply(p.w.db.Serve(op, bytes.Clone(body)))
}

// The faults that a request may meet.
const (
	requestLost = "request lost"
	requestLate = "request late"
	replyLost   = "reply lost"
	failBefore  = "500 before the write"
	failAfter   = "500 after the write"
	throttled   = "throttled"
	killedAfter = "killed after"
)

var fates = []string{requestLost, requestLate, replyLost, failBefore, failAfter, throttled, killedAfter}

// guard returns a new guard for the process, configured as in a function's main.
func (p *process) guard() *lambdaidem.Guard {
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String("http://dynamodb.simulated"), HTTPClient: p,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "simulated", SecretAccessKey: "simulated"}, nil
		}),
	})
	store := dynamostore.New(client, records, func(o *dynamostore.Options) {
		o.Random = func() float64 { return float64(p.draw(1000)) / 1000 }
		o.Transport = []dynamostore.Transport{dynamostore.TransportDirect, dynamostore.TransportSDK}[p.number%2]
	})
	return lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Random = "consumer", lambdaidem.Discard, io.Reader(p)
		o.Optimistic = p.w.plan.Optimistic
		if p.w.plan.Hold {
			o.Policy = lambdaidem.Hold
		}
		if p.w.mut.Guard != nil {
			p.w.mut.Guard(o)
		}
	})
}

var errBad = errors.New("the handler failed")

// handle is the user's handler. It takes some time, may fail, and otherwise enlists its effect.
func (p *process) handle(ctx context.Context, m *message) error {
	p.exitIfKilled()
	w := p.w
	w.mu.Lock()
	w.report.Runs++
	w.mu.Unlock()
	takes := time.Duration(1 + p.draw(int64(30*time.Millisecond)))
	if w.chance(w.plan.Slow) {
		takes += time.Duration(p.draw(int64(w.plan.Timeout)))
	}
	if !p.sleep(ctx, takes) {
		return lambdaidem.Retryable(ctx.Err()) // there is no effect before the commit
	}
	if m.poison || w.chance(w.plan.Bad) {
		if p.draw(4) == 0 && !w.plan.Hold {
			panic(fmt.Sprintf("%s is bad", m.id()))
		}
		return lambdaidem.Retryable(errBad)
	}
	write := types.Update{
		TableName: aws.String(effects), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: m.id()}},
		UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
	}
	if w.mut.Unguarded {
		w.mustServe("UpdateItem", fmt.Sprintf(`{"TableName":%q,"Key":{"id":{"S":%q}},"UpdateExpression":"ADD n :one","ExpressionAttributeValues":{":one":{"N":"1"}}}`, effects, m.id()))
		return nil
	}
	dynamostore.Enlist(ctx).Update("effect", write)
	return nil
}
