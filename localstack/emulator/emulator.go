package emulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// Emulator runs the functions of one template.
type Emulator struct {
	options Options
	log     *lockedWriter
	pools   []*pool
	servers []*http.Server
	urls    map[string]string // by the API's or function's logical ID
	main    string
	serving sync.WaitGroup

	ctx      context.Context // Start's: its end ends everything at once
	unwatch  func() bool
	once     sync.Once
	closeErr error
}

// Start checks the template and the binaries, and begins to listen. Functions
// are started by their first invocation. The emulator ends by Close, or at
// once when ctx ends.
func Start(ctx context.Context, options Options) (*Emulator, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Emulator{
		ctx:     ctx,
		options: options,
		log:     &lockedWriter{w: options.Log},
		urls:    map[string]string{},
	}
	for _, f := range options.Template.Functions {
		binary, err := checkBinary(f.LogicalID, options.Binary(f.LogicalID))
		if err != nil {
			return nil, err
		}
		n, err := slots(f, options)
		if err != nil {
			return nil, err
		}
		e.pools = append(e.pools, &pool{function: f, slots: n, binary: binary, options: options, log: e.log})
	}
	apis, err := e.apis()
	if err != nil {
		return nil, err
	}
	if err := e.listen(apis); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.announce(apis)
	e.unwatch = context.AfterFunc(ctx, func() { _ = e.Close() })
	return e, nil
}

// URL returns the base URL of the first HTTP API, such as http://127.0.0.1:3000. A
// template without HTTP APIs has nothing but the Lambda Invoke API there.
func (e *Emulator) URL() string { return e.main }

// InvokeURL returns the endpoint of the Lambda Invoke API for the AWS CLI and the
// SDKs: aws lambda invoke --endpoint-url.
func (e *Emulator) InvokeURL() string { return e.main }

// URLs returns the base URL of every API, by its logical ID, and of every
// function URL, by its function's logical ID.
func (e *Emulator) URLs() map[string]string { return maps.Clone(e.urls) }

// Invoke runs a function, by logical ID or name, and returns its result. The
// error says why Lambda would have refused the invocation, or that ctx ended;
// then the function runs on, as it does in Lambda.
func (e *Emulator) Invoke(ctx context.Context, function string, payload []byte) (Result, error) {
	p := e.pool(function)
	if p == nil {
		return Result{}, fmt.Errorf("%w: %s", ErrFunctionNotFound, function)
	}
	return e.invoke(ctx, p, newInvocation(ctx, e.arn(p.function.Name), payload))
}

func (e *Emulator) invoke(ctx context.Context, p *pool, inv *invocation) (Result, error) {
	answer, err := p.start(inv)
	if err != nil {
		return Result{}, err
	}
	select {
	case o := <-answer:
		return o.result, o.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// Capacity returns how many invocations of a function, by logical ID or name, run at a
// time: MaxProcesses times the slots of a process. Further ones wait in line, or are
// refused with Throttle. It is 0 for a function that is not there.
func (e *Emulator) Capacity(function string) int {
	p := e.pool(function)
	if p == nil {
		return 0
	}
	return p.options.MaxProcesses * p.slots
}

// Processes lists the live processes of a function, by logical ID or name, in
// the order of their start. A function that is not there has none.
func (e *Emulator) Processes(function string) []Process {
	if p := e.pool(function); p != nil {
		return p.snapshot()
	}
	return nil
}

func (e *Emulator) pool(function string) *pool {
	for _, p := range e.pools {
		if p.function.LogicalID == function || p.function.Name == function {
			return p
		}
	}
	return nil
}

func (e *Emulator) arn(functionName string) string {
	return template.ARN("lambda", e.options.Region, e.accountID(), "function:"+functionName)
}

func (e *Emulator) accountID() string {
	return cmp.Or(e.options.Template.AccountID, "000000000000")
}
