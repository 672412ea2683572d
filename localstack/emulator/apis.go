package emulator

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/localstack/internal/ownpages"
	"github.com/lambdaidem/toolkit/localstack/template"
)

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
	invoke := ownpages.Only(&invokeAPI{emulator: e})
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
