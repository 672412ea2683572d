package emulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// Options configure Start.
type Options struct {
	// Template says which functions and routes there are. Required.
	Template *template.Template

	// Binary returns the path of a function's bootstrap, by the function's
	// logical ID. Required.
	Binary func(logicalID string) string

	// Addr is where the HTTP API and the Lambda Invoke API listen, such as
	// 127.0.0.1:3000. Anything but a loopback address is refused.
	// Default: 127.0.0.1 and a free port.
	Addr string

	// Region is AWS_REGION of the functions. Default: the template's.
	Region string

	// Endpoint is AWS_ENDPOINT_URL_DYNAMODB of the functions, such as
	// http://127.0.0.1:8000. Default: not set.
	Endpoint string

	// AccessKeyID returns the access key ID of a function's credentials, by the
	// function's logical ID. Default: "local" for all functions.
	AccessKeyID func(logicalID string) string

	// Env is added to every function's environment, over the template's. With
	// AWS_LAMBDA_MAX_CONCURRENCY, 1 to 1600, a process has so many invocations
	// at a time, as on Lambda Managed Instances; EMULATOR.md says what else that
	// changes. Default: one.
	Env map[string]string

	// Log gets what the functions write, each line after the function's
	// logical ID and process id, and what the emulator has to say.
	// Default: os.Stderr.
	Log io.Writer

	// Progress gets what must be seen at the start: that tokens are not
	// verified, and which events are not emulated. Default: Log.
	Progress io.Writer

	// SourcesDelivered says that somebody else delivers the events of the template's
	// Sources, as package eventsource does. Default: the start names them among
	// the events that are not emulated.
	SourcesDelivered bool

	// Middleware wraps the handler of every API, function URL and of the Lambda Invoke API,
	// for example to watch requests. It can relate a request to its invocation by [TraceID].
	// Default: nil, none.
	Middleware func(http.Handler) http.Handler

	// Observe is called when a process or an invocation begins or ends. It is called by
	// several goroutines at once, which wait for it, and must not call the emulator.
	// Default: nil.
	Observe func(Event)

	// MaxProcesses bounds the processes of one function, whatever each of them
	// can have at a time. Default: 50.
	MaxProcesses int

	// Throttle refuses an invocation when MaxProcesses are busy (429), as
	// Lambda does. Default: it waits in line.
	Throttle bool

	// InitTimeout is how long a process may take from its start to its first
	// call of the Runtime API. Default: 10 s, as in Lambda.
	InitTimeout time.Duration

	// KillDelay lets a process live on for so long after its function's
	// Timeout. The caller gets the timeout's answer in time, and the process
	// never serves again. Tests use it to see what a late attempt does.
	// Default: 0, killed at the timeout, as in Lambda. It says nothing of a
	// function with AWS_LAMBDA_MAX_CONCURRENCY, which no timeout kills.
	KillDelay time.Duration
}

func (o Options) withDefaults() (Options, error) {
	if o.Template == nil {
		return o, errors.New("emulator: Options.Template is missing")
	}
	if o.Binary == nil {
		return o, errors.New("emulator: Options.Binary is missing")
	}
	if o.MaxProcesses < 0 || o.InitTimeout < 0 || o.KillDelay < 0 {
		return o, errors.New("emulator: Options.MaxProcesses, InitTimeout and KillDelay can't be negative")
	}
	o.Addr = cmp.Or(o.Addr, "127.0.0.1:0")
	o.Region = cmp.Or(o.Region, o.Template.Region, "us-east-1")
	o.MaxProcesses = cmp.Or(o.MaxProcesses, 50)
	o.InitTimeout = cmp.Or(o.InitTimeout, 10*time.Second)
	if o.AccessKeyID == nil {
		o.AccessKeyID = func(string) string { return "local" }
	}
	if o.Log == nil {
		o.Log = os.Stderr
	}
	if o.Middleware == nil {
		o.Middleware = func(h http.Handler) http.Handler { return h }
	}
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	return o, nil
}

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

// api is something with a listener of its own.
type api struct {
	logicalID string
	title     string
	handler   http.Handler
	insecure  []string // routes whose tokens are taken unverified
}

// apis makes a handler for every API and function URL of the template; the
// first one also serves the Lambda Invoke API.
func (e *Emulator) apis() ([]api, error) {
	type key struct {
		kind      template.APIKind
		logicalID string
	}
	routers := map[key]*router{}
	var keys []key
	var apis []api
	for _, p := range e.pools {
		for _, route := range p.function.Routes {
			k := key{route.Kind, route.API}
			if routers[k] == nil {
				routers[k] = &router{}
				keys = append(keys, k)
			}
			if err := routers[k].add(target{route, p}); err != nil {
				return nil, fmt.Errorf("emulator: %s: %w", route.API, err)
			}
		}
	}
	// HTTP APIs come first, so that URL is the address of one where there is one.
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Compare(a.kind, b.kind) })
	for _, k := range keys {
		a := api{logicalID: k.logicalID}
		if k.kind == template.HTTPAPI {
			a.title, a.handler = "HTTP API", &httpAPI{router: routers[k], emulator: e, id: k.logicalID}
		} else {
			a.title, a.handler = "REST API", &restAPI{router: routers[k], emulator: e, id: k.logicalID}
		}
		for _, t := range routers[k].targets {
			if t.route.Authorizer != nil {
				a.insecure = append(a.insecure, t.route.Key())
			}
		}
		apis = append(apis, a)
	}
	for _, p := range e.pools {
		if p.function.URL != nil {
			apis = append(apis, api{logicalID: p.function.LogicalID, title: "function URL", handler: &functionURL{pool: p, emulator: e}})
		}
	}
	invoke := &invokeAPI{emulator: e}
	if len(apis) == 0 || apis[0].title != "HTTP API" {
		apis = append([]api{{title: "Lambda Invoke API", handler: http.NotFoundHandler()}}, apis...)
	}
	rest := apis[0].handler
	apis[0].handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, invokePrefix) {
			invoke.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
	return apis, nil
}

// listen opens a listener for every API: the first one at Addr, the others at
// free ports of the same address.
func (e *Emulator) listen(apis []api) error {
	addr, err := loopback(e.options.Addr)
	if err != nil {
		return err
	}
	for i, a := range apis {
		if i > 0 {
			addr.Port = 0
		}
		listener, err := net.ListenTCP("tcp", addr)
		if err != nil {
			return fmt.Errorf("emulator: listening on %s: %w; is another one running there?", addr, err)
		}
		url := "http://" + listener.Addr().String()
		if i == 0 {
			e.main = url
		}
		if a.logicalID != "" {
			e.urls[a.logicalID] = url
		}
		server := &http.Server{Handler: traced(e.options.Middleware(drained(a.handler))), ReadHeaderTimeout: time.Minute}
		e.servers = append(e.servers, server)
		e.serving.Go(func() { _ = server.Serve(listener) }) // ends by shutdown
	}
	return nil
}

// loopback resolves an address and refuses it unless only this machine can
// reach it: tokens are not verified.
func loopback(address string) (*net.TCPAddr, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("emulator: the address %q is not host:port: %w", address, err)
	}
	if !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("emulator: refusing to listen on %q: it does not verify tokens, "+
			"so it listens on a loopback address only, such as 127.0.0.1:3000", address)
	}
	return addr, nil
}

func (e *Emulator) announce(apis []api) {
	progress := e.log
	if e.options.Progress != nil {
		progress = &lockedWriter{w: e.options.Progress}
	}
	for _, a := range apis {
		if len(a.insecure) > 0 {
			progress.printf("WARNING: %s: tokens are NOT VERIFIED. Anyone on this machine can be anyone, by any token. For local use only. Routes: %s",
				a.logicalID, strings.Join(a.insecure, ", "))
		}
	}
	for _, p := range e.pools {
		others := slices.Clone(p.function.OtherEvents)
		if !e.options.SourcesDelivered {
			for _, s := range p.function.Sources {
				others = append(others, s.Name+" ("+s.Kind()+")")
			}
		}
		for _, event := range others {
			progress.printf("%s: event %s is not emulated; send it by the Lambda Invoke API", p.function.LogicalID, event)
		}
	}
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

// Close refuses new requests, and by [ErrClosed] those that wait in line; waits for
// the invocations in progress, no longer than they may take (Options.InitTimeout of a
// process that starts, and the function's Timeout), nor than Start's context; and
// ends all processes. When it returns, they are gone. It may be called again.
func (e *Emulator) Close() error {
	e.once.Do(func() {
		if e.unwatch != nil {
			e.unwatch()
		}
		e.closeErr = e.shutdown()
	})
	return e.closeErr
}

// writeAnswers bounds how long Close waits for clients to take their answers.
const writeAnswers = 2 * time.Second

func (e *Emulator) shutdown() error {
	var closing sync.WaitGroup
	for _, p := range e.pools {
		closing.Go(func() { p.close(e.ctx) })
	}
	closing.Wait()
	// Every invocation has its answer now; what is left is to write it.
	ctx, cancel := context.WithTimeout(context.Background(), writeAnswers)
	defer cancel()
	var errs []error
	for _, server := range e.servers {
		if err := server.Shutdown(ctx); err != nil {
			errs = append(errs, server.Close())
		}
	}
	e.serving.Wait()
	return errors.Join(errs...)
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
