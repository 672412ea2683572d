package idemclient_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// A guard with Options.Repeated needs the number of the attempt in the header of each retry. The
// first attempt has no such header.
func TestC1_ARetryHasTheNumberOfItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var numbers []string
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			numbers = append(numbers, strings.Join(r.Header.Values(lambdaidem.AttemptHeader), ","))
			status := http.StatusServiceUnavailable
			if len(numbers) == 3 {
				status = http.StatusCreated
			}
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
		})
		client := &http.Client{Transport: idemclient.New(base, []string{"api.example.com"})}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com/payments", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil || response.StatusCode != http.StatusCreated {
			t.Fatal(response, err)
		}
		_ = response.Body.Close()
		if !slices.Equal(numbers, []string{"", "2", "3"}) {
			t.Errorf("the attempts had the numbers %q", numbers)
		}
		if r.Header.Get(lambdaidem.AttemptHeader) != "" {
			t.Error("the caller's request was changed")
		}
	})
}
