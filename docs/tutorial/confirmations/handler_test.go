package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestConfirmation_ABatchThatComesTwiceSendsOneMail(t *testing.T) {
	mails := map[string]int{} // by the idempotency key
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { mails[r.Header.Get("Idempotency-Key")]++ }))
	defer service.Close()
	batch := idemtest.DynamoDBStream("orders", idemtest.Message{Group: "order-1"})

	idemtest.Twice(t, mailer{service.URL}.guarded(memstore.New()), batch)
	if len(mails) != 1 || mails[""] != 0 {
		t.Errorf("the mailer was called with the keys %v", mails)
	}
}

func TestConfirmation_AMailIsSentAgainUnderTheSameKey(t *testing.T) {
	mails := map[string]int{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mails[r.Header.Get("Idempotency-Key")]++
		w.WriteHeader(http.StatusBadGateway) // the mailer may have sent the mail
	}))
	defer service.Close()
	handler := mailer{service.URL}.guarded(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	batch := idemtest.DynamoDBStream("orders", idemtest.Message{Group: "order-1"})

	for range 2 {
		response, err := handler(idemtest.Invocation(t, 10*time.Second), batch)
		if err != nil || len(response.BatchItemFailures) != 1 {
			t.Errorf("the batch returned %+v, %v; want one failed record", response, err)
		}
	}
	if len(mails) != 1 || mails[""] != 0 {
		t.Errorf("the mailer was called with the keys %v", mails)
	}
}
