package ledger

import (
	"errors"
	"net/http"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Accounts is the name of the table of accounts. An account is what an owner has
// in one currency: an item with the attributes id and balance, in minor units.
//
// The functions open none: where money comes from is not their business. Write
// the item to the table, as stack.OpenAccount does for the demo and the tests:
//
//	{"id": {"S": "EUR https://issuer.example.com alice"}, "balance": {"N": "10000"}}
type Accounts string

// accountID returns the currency, which has three letters, then whose it is.
func accountID(owner, currency string) itemID { return itemID{currency + " " + owner} }

// What becomes of a request that an account is in the way of: an answer that is
// stored and replayed.
var (
	ErrNoAccount         = lambdaidem.Reject(http.StatusNotFound, "account_not_found", "You have no account in this currency.")
	ErrNoRecipient       = lambdaidem.Reject(http.StatusNotFound, "recipient_not_found", "The recipient has no account in this currency.")
	ErrInsufficientFunds = lambdaidem.Reject(http.StatusPaymentRequired, "insufficient_funds", "Your account does not have that much.")
)

// Refusal returns the one of these errors that err is, by its code: of an error that a
// call of lambdaidem.Do replays, the code and the message are all that survives.
// It is nil if err is none of them.
func Refusal(err error) error {
	for _, refusal := range []error{ErrNoAccount, ErrNoRecipient, ErrInsufficientFunds} {
		if own := (*lambdaidem.Error)(nil); errors.As(refusal, &own) && errors.Is(err, own.Code) {
			return refusal
		}
	}
	return nil
}

// Debit enlists that an amount leaves an account, which never has less than 0.
// The condition is looked at when the money moves, with the answer: there is no
// moment between a check and a write.
func (a Accounts) Debit(tx *dynamostore.Tx, owner, currency string, amount int64) {
	tx.UpdateValue("debit", string(a), accountID(owner, currency), "SET balance = balance - :amount", dynamostore.Args{":amount": amount}).
		If("balance >= :amount", nil).
		ElseFunc(func(failed *dynamostore.ConditionFailed) error {
			if failed.Absent() {
				return ErrNoAccount
			}
			return ErrInsufficientFunds
		})
}

// Credit enlists adding an amount to an account. If the account doesn't exist, the call
// fails with [lambdaidem.ErrConditionFailed], which is never stored, and a retry can
// succeed once the account exists. A caller that has done nothing irreversible yet may
// store a refusal instead: add Else to the write that Credit returns.
func (a Accounts) Credit(tx *dynamostore.Tx, owner, currency string, amount int64) *dynamostore.Write {
	return tx.UpdateValue("credit", string(a), accountID(owner, currency), "SET balance = balance + :amount", dynamostore.Args{":amount": amount}).
		If("attribute_exists(id)", nil)
}

// CheckRecipient enlists the condition that there is an account.
func (a Accounts) CheckRecipient(tx *dynamostore.Tx, owner, currency string) {
	tx.CheckValue("recipient", string(a), accountID(owner, currency), "attribute_exists(id)", nil).Else(ErrNoRecipient)
}
