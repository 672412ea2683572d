package lambdaidem

// This file decides which calls of the store are repeated after an error.

// readFailsAgain reports whether a read that failed with err would fail the same way if it
// were repeated.
func readFailsAgain(err error) bool {
	switch reasonOf(err) { //nolint:exhaustive // all other reasons may be temporary
	case ReasonNoTable, ReasonPermission, ReasonInvalid, ReasonForeign:
		return true
	}
	return false
}

// commitFailsAgain reports whether err shows that a transaction was not applied, and that
// it would fail in the same way if it were sent again.
func commitFailsAgain(err error) bool {
	switch reasonOf(err) { //nolint:exhaustive // a read can't fail for these reasons; see readFailsAgain for the others
	case ReasonTooLarge, ReasonEncoding:
		return notApplied(err)
	}
	return readFailsAgain(err) && notApplied(err)
}

// retryableSave reports whether a call of SaveSteps that failed with err may succeed if it is
// repeated.
func retryableSave(err error) bool {
	switch reasonOf(err) {
	case ReasonTooLarge, ReasonEncoding, ReasonInvalid, ReasonForeign:
		return false
	default:
		return true
	}
}
