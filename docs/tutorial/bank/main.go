// Command bank stands in for the bank and the mailer of the tutorial. It prints what it is
// asked to do.
package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"
)

func main() {
	http.HandleFunc("POST /charges", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("charged %q\n", body)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"number":%q}`, rand.Text())
	})
	http.HandleFunc("POST /mails", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("mail %q: %q\n", r.Header.Get("Idempotency-Key"), body)
	})
	server := http.Server{Addr: "127.0.0.1:9000", ReadHeaderTimeout: time.Second}
	log.Fatal(server.ListenAndServe())
}
