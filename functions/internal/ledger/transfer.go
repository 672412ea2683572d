package ledger

import (
	"crypto/rand"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// Transfer is one transfer: an item of the table.
type Transfer struct {
	ID        string `dynamodbav:"id"`
	From      string `dynamodbav:"from"` // whose account it comes from, see package caller
	To        string `dynamodbav:"to"`
	Amount    int64  `dynamodbav:"amount"`
	Currency  string `dynamodbav:"currency"` // ISO 4217
	Reference string `dynamodbav:"reference"`
	CreatedAt string `dynamodbav:"created_at"` // RFC 3339
	Status    Status `dynamodbav:"status"`
}

// Status is how far a transfer is.
type Status string

// A transfer is reserved, and then one of the others for good.
const (
	Reserved Status = "reserved" // the money is out of one account and in no other: the transfer has it
	Done     Status = "done"     // it is in the other
	Refused  Status = "refused"  // it is back
)

// NewTransferID makes up an ID, like [NewPaymentID].
func NewTransferID() string { return "tra_" + rand.Text() }

// Transfers is the name of the table of transfers.
type Transfers string

// Add enlists a new transfer.
func (t Transfers) Add(tx *dynamostore.Tx, transfer Transfer) {
	tx.PutValue("transfer", string(t), transfer)
}

// End enlists the end of a reserved transfer. Nobody else ends it; if somebody
// did by hand, the condition keeps the money from being given twice.
func (t Transfers) End(tx *dynamostore.Tx, transfer Transfer, as Status) {
	tx.UpdateValue("transfer", string(t), itemID{transfer.ID}, "SET #status = :as", dynamostore.Args{"#status": "status", ":as": as}).
		If("#status = :reserved", dynamostore.Args{":reserved": Reserved})
}
