package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
)

// clearing is the base URL of the clearing house, which has to know of every
// transfer. It honours Idempotency-Key for at least as long as our own records
// live, and what it did it never undoes. Package localstack/clearing has one to try.
type clearing string

// ruling is what it says of a transfer. One of the two is set.
type ruling struct {
	ID      string `json:"id"`     // of the clearing
	Refused string `json:"reason"` // why there is none, and will be none
}

// clear tells the clearing house of a transfer. After an error it is not known
// what it did; the same key finds out.
func (c clearing) clear(ctx context.Context, key string, t ledger.Transfer) (ruling, error) {
	body, err := json.Marshal(map[string]any{"transfer": t.ID, "amount": t.Amount, "currency": t.Currency, "reference": t.Reference})
	if err != nil {
		return ruling{}, fmt.Errorf("clear %s: %w", t.ID, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, string(c)+"/clearings", bytes.NewReader(body))
	if err != nil {
		return ruling{}, fmt.Errorf("clear %s: %w", t.ID, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return ruling{}, fmt.Errorf("clear %s: %w", t.ID, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	var said ruling
	err = json.NewDecoder(resp.Body).Decode(&said)
	switch {
	case resp.StatusCode == http.StatusCreated && err == nil && said.ID != "":
		return ruling{ID: said.ID}, nil
	case resp.StatusCode == http.StatusUnprocessableEntity && err == nil && said.Refused != "":
		return ruling{Refused: said.Refused}, nil
	}
	return ruling{}, fmt.Errorf("clear %s: the answer is %s, and no ruling", t.ID, resp.Status)
}
