package ledger

import (
	"errors"
	"net/http"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Accounts is the name of the table of accounts. An account is the money of one owner in one
// currency. It is an item with the attributes id and balance. The balance is in minor
// units, such as cents.
//
// The functions open no accounts. To open one, write the item to the table, as
// stack.OpenAccount does for the demo and the tests:
//
//	{"id": {"S": "EUR https://issuer.example.com alice"}, "balance": {"N": "10000"}}
type Accounts string

// accountID returns the key of an account: the currency, which has three letters, a space
// and the owner.
func accountID(owner, currency string) itemID { return itemID{currency + " " + owner} }

// The answers to requests that the state of an account forbids. The guard stores and
// replays them.
var (
	ErrNoAccount         = lambdaidem.Reject(http.StatusNotFound, "account_not_found", "You have no account in this currency.")
	ErrNoRecipient       = lambdaidem.Reject(http.StatusNotFound, "recipient_not_found", "The recipient has no account in this currency.")
	ErrInsufficientFunds = lambdaidem.Reject(http.StatusPaymentRequired, "insufficient_funds", "Your account does not have that much.")
)

// Refusal returns ErrNoAccount, ErrNoRecipient or ErrInsufficientFunds if err has the code
// of that error, and nil otherwise. It compares codes because lambdaidem.Do replays an
// error with its code and message, but not with its identity.
func Refusal(err error) error {
	for _, refusal := range []error{ErrNoAccount, ErrNoRecipient, ErrInsufficientFunds} {
		if own := (*lambdaidem.Error)(nil); errors.As(refusal, &own) && errors.Is(err, own.Code) {
			return refusal
		}
	}
	return nil
}

// Debit enlists taking an amount from an account. If the account does not exist, the answer
// is ErrNoAccount. If its balance is too small, the answer is ErrInsufficientFunds.
//
// DynamoDB checks the balance in the transaction that moves the money and stores the answer,
// so the balance can't change between the check and the write.
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

// CheckRecipient enlists the condition that the account exists. If it does not, the answer
// is ErrNoRecipient.
func (a Accounts) CheckRecipient(tx *dynamostore.Tx, owner, currency string) {
	tx.CheckValue("recipient", string(a), accountID(owner, currency), "attribute_exists(id)", nil).Else(ErrNoRecipient)
}
