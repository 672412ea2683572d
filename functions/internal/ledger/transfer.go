package ledger

import (
	"crypto/rand"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// Transfer is a transfer of money between two accounts, as an item of the table.
type Transfer struct {
	ID        string `dynamodbav:"id"`
	From      string `dynamodbav:"from"`     // owner of the account that pays, as caller.Of returns it
	To        string `dynamodbav:"to"`       // owner of the account that receives the money
	Amount    int64  `dynamodbav:"amount"`   // minor units, such as cents
	Currency  string `dynamodbav:"currency"` // ISO 4217
	Reference string `dynamodbav:"reference"`
	CreatedAt string `dynamodbav:"created_at"` // RFC 3339
	Status    Status `dynamodbav:"status"`
}

// Status is the progress of a transfer.
type Status string

// The statuses. A transfer begins as Reserved and ends as Done or Refused.
const (
	Reserved Status = "reserved" // the money has left the payer's account and is in no other account
	Done     Status = "done"     // the recipient's account has the money
	Refused  Status = "refused"  // the payer's account has the money back
)

// NewTransferID returns a new ID, like [NewPaymentID].
func NewTransferID() string { return "tra_" + rand.Text() }

// Transfers is the name of the table of transfers.
type Transfers string

// Add enlists a new transfer.
func (t Transfers) Add(tx *dynamostore.Tx, transfer Transfer) {
	tx.PutValue("transfer", string(t), transfer)
}

// End enlists setting the status of a reserved transfer to Done or Refused. Its condition
// fails if the transfer has ended already, for example because an operator ended it by hand,
// so that the money can't be paid out twice.
func (t Transfers) End(tx *dynamostore.Tx, transfer Transfer, as Status) {
	tx.UpdateValue("transfer", string(t), itemID{transfer.ID}, "SET #status = :as", dynamostore.Args{"#status": "status", ":as": as}).
		If("#status = :reserved", dynamostore.Args{":reserved": Reserved})
}
