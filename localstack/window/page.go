package window

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strconv"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/internal/ownpages"
)

//go:embed page.html window.css window.js icon.svg
var files embed.FS

var page = template.Must(template.ParseFS(files, "page.html"))

// contentPolicy lets the page load what this server serves, and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// maxForm is the maximum number of bytes of a request from the page: more than a gateway takes.
const maxForm = 16 << 20

// handler returns the handler of the page.
func (w *Window) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", w.servePage)
	mux.Handle("GET /events", w.history)
	for _, name := range []string{"window.css", "window.js", "icon.svg"} {
		mux.Handle("GET /"+name, http.FileServerFS(files))
	}
	mux.Handle("GET /sequence.css", http.FileServerFS(sequence.Files))
	mux.Handle("GET /sequence.js", http.FileServerFS(sequence.Files))
	mux.HandleFunc("POST /send", withForm(w.sendForm))
	mux.HandleFunc("POST /repeat", answered(func(r *http.Request) error {
		times, _ := strconv.Atoi(r.FormValue("times")) // 0: once
		return w.repeat(times, r.FormValue("body") == "other")
	}))
	mux.HandleFunc("POST /fault/{name}", answered(func(r *http.Request) error { return w.setFault(r.PathValue("name")) }))
	mux.HandleFunc("POST /story/{id}", func(rw http.ResponseWriter, r *http.Request) {
		withForm(func(f form) error { return w.tell(r.PathValue("id"), f) })(rw, r)
	})
	mux.HandleFunc("POST /clear", answered(func(*http.Request) error { return w.clear() }))
	return w.tracked(ownpages.Only(guarded(mux)))
}

// tracked has Close wait for a request.
func (w *Window) tracked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		if w.closed {
			w.mu.Unlock()
			return
		}
		w.tasks.Add(1)
		w.mu.Unlock()
		defer w.tasks.Done()
		next.ServeHTTP(rw, r)
	})
}

// guarded sets the headers that protect the page, and limits what is read of a request.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h := rw.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store") // the next run may have another page
		r.Body = http.MaxBytesReader(rw, r.Body, maxForm)
		next.ServeHTTP(rw, r)
	})
}

// answered returns a handler that answers 204, or 200 with the error's text if the command is
// refused. A refusal is no failure of the page: a browser would log a 4xx to its console.
func answered(do func(*http.Request) error) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if err := do(r); err != nil {
			rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(rw, err.Error())
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	}
}

// withForm is like answered, for what takes a form in JSON.
func withForm(do func(form) error) http.HandlerFunc {
	return answered(func(r *http.Request) error {
		var f form
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			return fmt.Errorf("read the form: %w", err)
		}
		return do(f)
	})
}

// servePage serves the page, whose form depends on the template.
func (w *Window) servePage(rw http.ResponseWriter, r *http.Request) {
	curl, operator := w.curlExample(), w.operatorCommands(r.Context())
	w.mu.Lock()
	data := struct {
		Samples  bool
		Routes   []route
		Tokens   bool
		Stories  []story
		Faults   []fault
		Actions  []action
		Words    []word
		Key      string // that no request has had
		Curl     string
		Operator string // commands
	}{w.samples(), w.controls.routes, false, stories, pageFaults, pageActions, words, w.controls.newKey(), curl, operator}
	w.mu.Unlock()
	for _, to := range data.Routes {
		data.Tokens = data.Tokens || to.header != ""
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = page.Execute(rw, data) // an error is that the browser has gone
}

// samples reports whether the stack is this project's own, whose requests are known.
func (w *Window) samples() bool { return w.stack.Clearing() != nil }
