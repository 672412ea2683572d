package memstore_test

import (
	"context"
	"fmt"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func Example() {
	guard := lambdaidem.New(memstore.New())

	charge := func(context.Context) (string, error) {
		fmt.Println("the card is charged")
		return "ch_1", nil
	}
	call := lambdaidem.Call{Operation: "charge", Key: "order-1"}
	for range 2 {
		id, err := lambdaidem.Do(context.Background(), guard, call, charge)
		fmt.Println(id, err)
	}
	// Output:
	// the card is charged
	// ch_1 <nil>
	// ch_1 <nil>
}
