package storetest_test

// fault is the one thing that a variant does wrong.
type fault int

const (
	none fault = iota

	recordsNeverWritten
	idsWithoutCase

	acquireTakesLiveLease
	acquireTakesDeadLease
	acquireTakesReleased
	acquireTakesCompleted
	acquireReadsThenWrites
	expiredReadsThenWrites
	ownTokenLocksAgain
	ownTokenNotRecognised
	refusalWithoutAnswer
	refusalWithoutFingerprint
	refusalSharesAnswer
	refusalShowsExpired
	freshLockKeepsAttempt
	freshLockKeepsAnswer
	leaseEndInSeconds
	startInNanoseconds
	scopeAsASCII
	emptyFingerprintRefused

	takeoverIgnoresToken
	takeoverIgnoresState
	takeoverIgnoresEnd
	takeoverComparesEndInSeconds
	takeoverIgnoresExpiry
	takeoverTakesCompleted
	takeoverRefusesReleased
	takeoverCreates
	takeoverReadsThenWrites
	takeoverKeepsAttempt
	releasedTakeoverKeepsAttempt
	takeoverKeepsFingerprint
	takeoverKeepsBound
	takeoverKeepsScope
	takeoverKeepsLeaseEnd
	takeoverKeepsStart
	takeoverKeepsInvocation
	takeoverKeepsLastFailure
	takeoverKeepsExpiryWithoutOwn
	holdExpires
	zeroExpiryIsPast

	completionUnfenced
	completionCreates
	completionReadsThenWrites
	completionKeepsLockExpiry
	completionEndsLease
	completionIgnoresExpiry
	lateCompletionLost
	lostCompletionAsSuccess
	lostWithoutRecord
	releasedCompletes
	repeatedCompletionOverwrites
	repeatedCompletionLost
	momentsInSeconds

	releaseUnfenced
	releaseCreates
	releaseDeletes
	releaseKeepsLockExpiry
	releaseDropsFingerprint
	releaseKeepsBound
	releaseDropsToken
	releaseResetsAttempt
	releaseDropsInvocation
	releaseDropsLastFailure
	completionDropsInvocation
	acquireDropsInvocation
	releaseAfterCompletion
	releaseDeletesCompleted
	releaseIgnoresExpiry
	lateReleaseLost
	repeatedReleaseLost
	lostReleaseAsSuccess

	leaseComparedInSeconds
	leaseOverTooLate
	expiredLiveLeaseGone
	expiryNeedsDeadLeaseInAnyState
	expiryTooLate
	expiryTooEarly
	neverExpires
	releasedNeverExpires
	deadAttemptNeverExpires
	clockNeverBack
	expiredDeletedAtOnce
	readShowsExpired
	absentReadFails

	valueAsUTF8
	valueTrimmed
	valueCut
	emptyValueAsNull
	emptyValueAsFailure
	outcomeDropped
	failureDropped
	failureWithoutStatus
	failureWithoutType
	failureAsValueToo
	inputShared
	replyShared
	readShared

	loadCut
	loadOfTheLatest
	loadIgnoresContext
	endedLoadIsForeign
	saveDropped
	saveUnfenced
	saveCreates
	saveAfterRelease
	saveAfterCompletion
	saveIgnoresExpiry
	saveOverwritesFingerprint
	saveTakesAway
	lateSaveLost
	lostSaveAsSuccess
	repeatedSaveRefused
	stepsAsUTF8
	stepsOfTheToken
	takeoverDropsSteps
	takeoverKeepsSeenSteps
	takeoverRepliesWithoutSteps
	releaseDropsSteps
	completionKeepsSteps
	freshLockKeepsSteps
	refusalWithoutSteps
	stepsInputShared
	stepsReadShared
	contextIgnoredBySave

	holdForgotten
	holdIgnoresToken
	holdIgnoresLeaseEnd
	holdIgnoresState
	holdIgnoresExpiry
	holdDropsFingerprint
	holdOfChangedFails
	holdKeepsLeaseEnd
	holdShowsNoOther
	heldNeverTaken

	commitJudgesByItsEnd
	commitHidesWhatExpired

	contextIgnoredByAcquire
	contextIgnoredByComplete
	contextIgnoredByRelease
	contextIgnoredByGet
	contextErrorBare
	contextErrorUnknown
	contextErrorMisnamed

	faultCount
)

// faults describes each fault, and lists the steps that must detect it: those whose rule the fault
// breaks. Other steps may detect it too.
var faults = [faultCount]struct {
	does     string
	caughtBy []string
}{
	none: {"nothing is wrong", nil},

	recordsNeverWritten: {"records are never written", []string{"first acquire"}},
	idsWithoutCase:      {"ids are compared without case", []string{"records are apart"}},

	acquireTakesLiveLease:     {"a plain acquire takes a live lease", []string{"a live lease refuses"}},
	acquireTakesDeadLease:     {"a plain acquire takes a dead lease", []string{"a dead lease refuses a plain acquire"}},
	acquireTakesReleased:      {"a plain acquire takes a released record", []string{"a released record refuses a plain acquire"}},
	acquireTakesCompleted:     {"a plain acquire takes a completed record", []string{"a completed record answers"}},
	acquireReadsThenWrites:    {"an acquire reads, then writes without a condition", []string{"one acquire of many wins"}},
	expiredReadsThenWrites:    {"a lock over an expired record has no condition", []string{"one acquire of many over an expired record wins"}},
	ownTokenLocksAgain:        {"an acquire with its own token locks again", []string{"acquire again"}},
	ownTokenNotRecognised:     {"an acquire does not recognise its own token", []string{"take over again"}},
	refusalWithoutAnswer:      {"a refused acquire leaves out the answer", []string{"a completed record answers"}},
	refusalWithoutFingerprint: {"a refused acquire leaves out the fingerprint", []string{"a live lease refuses"}},
	refusalSharesAnswer:       {"a refused acquire shares its bytes", []string{"an answer is the store's own"}},
	refusalShowsExpired:       {"a refusal shows an expired record", []string{"a refusal does not show what has expired"}},
	freshLockKeepsAttempt:     {"a lock over an expired record goes on counting attempts", []string{"an expired attempt is locked afresh"}},
	freshLockKeepsAnswer:      {"a lock over an expired record keeps the old answer", []string{"an expired answer is locked afresh"}},
	leaseEndInSeconds:         {"the lease's end is kept in seconds", []string{"lease ends and moments are kept in milliseconds"}},
	startInNanoseconds:        {"the start is kept in nanoseconds", []string{"lease ends and moments are kept in milliseconds"}},
	scopeAsASCII:              {"the scope is kept as ASCII", []string{"a claim's texts are kept"}},
	emptyFingerprintRefused:   {"an empty fingerprint is refused", []string{"a claim's texts are kept"}},

	takeoverIgnoresToken:          {"a takeover ignores the token", []string{"takeover looks at the token"}},
	takeoverIgnoresState:          {"a takeover ignores the state", []string{"takeover looks at the state", "a completed record never changes"}},
	takeoverIgnoresEnd:            {"a takeover ignores the lease's end", []string{"takeover looks at the lease end"}},
	takeoverComparesEndInSeconds:  {"a takeover compares the lease's end in seconds", []string{"takeover looks at the lease end"}},
	takeoverIgnoresExpiry:         {"a takeover takes an expired record", []string{"an expired record is not taken over"}},
	takeoverTakesCompleted:        {"a takeover takes a completed record", []string{"a completed record never changes"}},
	takeoverRefusesReleased:       {"a takeover refuses a released record", []string{"takeover of a released record"}},
	takeoverCreates:               {"a takeover creates a record", []string{"takeover creates nothing"}},
	takeoverReadsThenWrites:       {"a takeover reads, then writes without a condition", []string{"one takeover of many wins"}},
	takeoverKeepsAttempt:          {"a takeover keeps the attempt number", []string{"takeover of a dead lease"}},
	releasedTakeoverKeepsAttempt:  {"a takeover of a released record keeps the attempt number", []string{"release and again"}},
	takeoverKeepsFingerprint:      {"a takeover keeps the fingerprint", []string{"takeover of a released record"}},
	takeoverKeepsBound:            {"a takeover keeps what binds the payload", []string{"what binds a payload is the claim's and the release's"}},
	takeoverKeepsScope:            {"a takeover keeps the scope", []string{"takeover of a released record"}},
	takeoverKeepsLeaseEnd:         {"a takeover keeps the lease's end", []string{"takeover of a dead lease"}},
	takeoverKeepsStart:            {"a takeover keeps the start", []string{"takeover of a dead lease"}},
	takeoverKeepsInvocation:       {"a takeover keeps the invocation", []string{"takeover of a dead lease"}},
	takeoverKeepsLastFailure:      {"a takeover keeps the last failure", []string{"takeover of a released record"}},
	takeoverKeepsExpiryWithoutOwn: {"a held takeover keeps the old expiry", []string{"a takeover sets or lifts the expiry"}},
	holdExpires:                   {"a held record expires", []string{"a held record does not expire"}},
	zeroExpiryIsPast:              {"a zero expiry counts as the year 1", []string{"a held record does not expire"}},

	completionUnfenced:           {"completion is not fenced", []string{"completion is fenced"}},
	completionCreates:            {"completion creates a record", []string{"nothing to complete"}},
	completionReadsThenWrites:    {"completion reads, then writes without a condition", []string{"one completion of many stays", "completion or takeover"}},
	completionKeepsLockExpiry:    {"completion keeps the lock's expiry", []string{"completion"}},
	completionEndsLease:          {"completion changes the lease's end", []string{"completion"}},
	completionIgnoresExpiry:      {"completion finishes an expired attempt", []string{"an expired attempt is lost"}},
	lateCompletionLost:           {"a completion after the lease's end is lost", []string{"a late completion succeeds"}},
	lostCompletionAsSuccess:      {"a lost completion is reported as success", []string{"a replaced attempt can't complete"}},
	lostWithoutRecord:            {"a lost completion does not say how the record stands", []string{"a replaced attempt can't complete"}},
	releasedCompletes:            {"a released attempt may complete", []string{"no completion after release"}},
	repeatedCompletionOverwrites: {"a second completion overwrites the first", []string{"complete again"}},
	repeatedCompletionLost:       {"a repeated completion is lost", []string{"complete again"}},
	momentsInSeconds:             {"the completion's moment is kept in seconds", []string{"lease ends and moments are kept in milliseconds"}},

	releaseUnfenced:           {"release is not fenced", []string{"release is fenced"}},
	releaseCreates:            {"release creates a record", []string{"nothing to release"}},
	releaseDeletes:            {"release deletes the record", []string{"release"}},
	releaseKeepsLockExpiry:    {"release keeps the lock's expiry", []string{"the end of a held record sets its expiry"}},
	releaseDropsFingerprint:   {"release drops the fingerprint", []string{"release"}},
	releaseKeepsBound:         {"release keeps what binds the payload", []string{"what binds a payload is the claim's and the release's"}},
	releaseDropsToken:         {"release drops the token", []string{"release"}},
	releaseResetsAttempt:      {"release resets the attempt number", []string{"release"}},
	releaseDropsInvocation:    {"release drops the invocation", []string{"release"}},
	releaseDropsLastFailure:   {"release drops the last failure", []string{"release"}},
	completionDropsInvocation: {"completion drops the invocation", []string{"completion"}},
	acquireDropsInvocation:    {"an acquire drops the invocation", []string{"first acquire"}},
	releaseAfterCompletion:    {"a completed attempt may release", []string{"no release after completion"}},
	releaseDeletesCompleted:   {"release deletes a completed record", []string{"no release after completion"}},
	releaseIgnoresExpiry:      {"release finishes an expired attempt", []string{"an expired attempt is lost"}},
	lateReleaseLost:           {"a release after the lease's end is lost", []string{"a late release succeeds"}},
	repeatedReleaseLost:       {"a repeated release is lost", []string{"release again"}},
	lostReleaseAsSuccess:      {"a lost release is reported as success", []string{"a replaced attempt can't release"}},

	leaseComparedInSeconds:         {"a lease is compared in seconds", []string{"a live lease outlives the expiry"}},
	leaseOverTooLate:               {"a lease is live in the millisecond that it names", []string{"a live lease outlives the expiry"}},
	expiredLiveLeaseGone:           {"an expired record is overwritten while its lease lives", []string{"an attempt with a live lease may end after its expiry"}},
	expiryNeedsDeadLeaseInAnyState: {"a finished record expires only after its lease", []string{"a finished record expires before its lease's end"}},
	expiryTooLate:                  {"a record is live in the second of its expiry", []string{"an expired answer is not read"}},
	expiryTooEarly:                 {"a record expires a second early", []string{"an expired answer is not read"}},
	neverExpires:                   {"nothing expires before the database deletes it", []string{"an expired answer is locked afresh"}},
	releasedNeverExpires:           {"released records don't expire", []string{"an expired release is locked afresh"}},
	deadAttemptNeverExpires:        {"attempts that died don't expire", []string{"an expired attempt is locked afresh"}},
	clockNeverBack:                 {"expiry is judged by the latest moment seen", []string{"time may run backwards"}},
	expiredDeletedAtOnce:           {"acquires delete what has expired", []string{"an expired record still refuses what is older"}},
	readShowsExpired:               {"a read shows expired records", []string{"an expired answer is not read"}},
	absentReadFails:                {"a read of no record is an error", []string{"no record"}},

	valueAsUTF8:          {"values are made UTF-8", []string{"bytes come back byte for byte"}},
	valueTrimmed:         {"values lose white space at the ends", []string{"text comes back byte for byte"}},
	valueCut:             {"values are cut at 64 KB", []string{"a big value comes back whole"}},
	emptyValueAsNull:     {"an empty value comes back as null", []string{"an empty value is a value"}},
	emptyValueAsFailure:  {"an empty value comes back as a failure", []string{"an empty value is a value"}},
	outcomeDropped:       {"the outcome is dropped", []string{"a value may be stored as failed"}},
	failureDropped:       {"the failure is dropped", []string{"a failure comes back whole"}},
	failureWithoutStatus: {"the failure's status is dropped", []string{"a failure comes back whole"}},
	failureWithoutType:   {"the failure's type is dropped", []string{"a failure comes back whole"}},
	failureAsValueToo:    {"a failure comes back with a value too", []string{"a failure comes back whole"}},
	inputShared:          {"the caller's bytes are kept", []string{"an answer is the store's own"}},
	replyShared:          {"a completion returns the store's own bytes", []string{"an answer is the store's own"}},
	readShared:           {"a read returns the store's own bytes", []string{"an answer is the store's own"}},

	loadCut:                     {"a load leaves out the last bytes", []string{"an answer of 6 MB comes back whole"}},
	loadOfTheLatest:             {"a load brings what was completed last, whatever became of it", []string{"a large answer is that of its own completion"}},
	loadIgnoresContext:          {"load goes on with an ended context", []string{"an ended context loads nothing"}},
	endedLoadIsForeign:          {"a load with an ended context says that the answer is lost", []string{"an ended context loads nothing"}},
	saveDropped:                 {"steps are never written", []string{"steps are saved"}},
	saveUnfenced:                {"a save is not fenced", []string{"a save is fenced"}},
	saveCreates:                 {"a save creates a record", []string{"no save after the attempt's end"}},
	saveAfterRelease:            {"a released attempt may save steps", []string{"no save after the attempt's end"}},
	saveAfterCompletion:         {"a completed attempt may save steps", []string{"no save after the attempt's end"}},
	saveIgnoresExpiry:           {"an expired attempt may save steps", []string{"what has expired has no steps"}},
	saveOverwritesFingerprint:   {"a save overwrites the fingerprint", []string{"steps are saved"}},
	saveTakesAway:               {"a late save takes steps away", []string{"a save takes no step away"}},
	lateSaveLost:                {"a save after the lease's end is lost", []string{"a late save succeeds"}},
	lostSaveAsSuccess:           {"a lost save is reported as success", []string{"a save is fenced"}},
	repeatedSaveRefused:         {"a repeated save is refused", []string{"save again"}},
	stepsAsUTF8:                 {"steps are made UTF-8", []string{"steps are saved"}},
	stepsOfTheToken:             {"steps are kept by token, not by record", []string{"steps are their record's alone"}},
	takeoverDropsSteps:          {"a takeover drops the steps", []string{"a takeover keeps the steps"}},
	takeoverKeepsSeenSteps:      {"a takeover keeps the steps that were seen", []string{"a takeover keeps the steps"}},
	takeoverRepliesWithoutSteps: {"a takeover does not tell of the steps", []string{"a takeover keeps the steps"}},
	releaseDropsSteps:           {"a release drops the steps", []string{"a release keeps the steps"}},
	completionKeepsSteps:        {"a completion keeps the steps", []string{"a completion drops the steps"}},
	freshLockKeepsSteps:         {"a lock over an expired record keeps the steps", []string{"what has expired has no steps"}},
	refusalWithoutSteps:         {"a refused acquire leaves out the steps", []string{"steps are saved"}},
	stepsInputShared:            {"the caller's steps are kept", []string{"steps are the store's own"}},
	stepsReadShared:             {"a read returns the store's own steps", []string{"steps are the store's own"}},
	holdForgotten:               {"a hold does nothing", []string{"a record that is held does not expire"}},
	holdIgnoresToken:            {"a hold changes the next attempt's record", []string{"a hold changes no other record"}},
	holdIgnoresLeaseEnd:         {"a hold changes a record whose lease was renewed", []string{"a hold changes no other record"}},
	holdIgnoresState:            {"a hold changes a finished record", []string{"a hold changes no other record"}},
	holdIgnoresExpiry:           {"a hold revives an expired record", []string{"a hold revives no expired record"}},
	holdDropsFingerprint:        {"a hold drops the fingerprint", []string{"a record that is held does not expire"}},
	holdOfChangedFails:          {"a hold of a changed record is an error", []string{"a hold changes no other record"}},
	holdKeepsLeaseEnd:           {"a hold keeps the lease end", []string{"a record that is held does not expire"}},
	holdShowsNoOther:            {"a hold of a changed record returns what was seen", []string{"a hold changes no other record"}},
	heldNeverTaken:              {"a record without an expiry can't be taken over", []string{"a held record does not expire", "a takeover sets or lifts the expiry", "a record that is held can be taken over"}},
	contextIgnoredBySave:        {"a save goes on with an ended context", []string{"an ended context saves no steps"}},

	commitJudgesByItsEnd: {"a completion with a claim is judged by the time of the completion", []string{
		"a record that has expired since refuses a claiming completion", "a claiming completion takes over a record that has expired since"}},
	commitHidesWhatExpired: {"a refused completion does not show what has expired since", []string{"a record that has expired since refuses a claiming completion"}},

	contextIgnoredByAcquire:  {"acquire goes on with an ended context", []string{"an ended context acquires nothing"}},
	contextIgnoredByComplete: {"complete goes on with an ended context", []string{"an ended context completes nothing"}},
	contextIgnoredByRelease:  {"release goes on with an ended context", []string{"an ended context releases nothing"}},
	contextIgnoredByGet:      {"get goes on with an ended context", []string{"an ended context reads nothing"}},
	contextErrorBare:         {"an ended context's error is not a StoreError", []string{"an ended context reads nothing"}},
	contextErrorUnknown:      {"an ended context leaves it open whether something was written", []string{"an ended context acquires nothing"}},
	contextErrorMisnamed:     {"an error names another operation", []string{"an ended context acquires nothing"}},
}
