package simulator

// Path names something that a transaction or an attempt went through. A simulation counts how often
// each path is taken.
type Path string

// The paths.
const (
	UnderLease       Path = "committed under the lease"
	ClaimedFree      Path = "claimed a record that was free"
	ClaimedOver      Path = "claimed a record over what was seen"
	ClaimedDead      Path = "claimed a dead lease"
	CommittedOpen    Path = "committed after failing open"
	CommittedAlone   Path = "committed unguarded"
	CommittedFailed  Path = "committed beside a failed answer"
	RecordAlone      Path = "optimistic, without writes"
	KnownToken       Path = "token known, nothing written"
	TokenForgotten   Path = "arrived when its token was forgotten"
	StillRunning     Path = "refused while it was in progress"
	ByRecord         Path = "cancelled: the record"
	ByOwnRecord      Path = "cancelled: the record, which it had completed"
	ByCondition      Path = "cancelled: the condition"
	ByBoth           Path = "cancelled: the record and the condition"
	ByConflict       Path = "cancelled: conflict on the record"
	ByWriteConflict  Path = "cancelled: conflict on a write"
	ByThrottling     Path = "cancelled: throttled"
	LoserReplayed    Path = "optimistic, lost the race and replayed"
	LoserBusy        Path = "optimistic, found another one under way"
	HeldInstead      Path = "dead under rerun, held by a retry under hold"
	HeldRespected    Path = "optimistic, found the record held"
	ConsultedFirst   Path = "optimistic, consulted the record before another end"
	AloneRefused     Path = "unguarded, refused"
	AloneUnknown     Path = "unguarded, unknown"
	OpenDropped      Path = "failed open, found the record taken"
	OpenUnknown      Path = "failed open, unknown"
	StepRuns         Path = "step run"
	StepRead         Path = "step read, which another attempt had stored"
	AnswerApart      Path = "answer in parts"
	AnswerCompressed Path = "answer compressed"
	AnswerGone       Path = "answer of which a part was lost"
	PartWritten      Path = "part written"
	PartLost         Path = "part lost"
	SignatureExpired Path = "arrived with an expired signature"
	StepsRespected   Path = "optimistic, found a record with steps"
	LeaseIndexed     Path = "in progress with a shard"
	LeaseUnindexed   Path = "shard removed"
	ClaimWithdrawn   Path = "withdrawn by a later invocation"
	PanicUnknown     Path = "unknown, and the author panicked about its condition"
	InnerRefused     Path = "inner call refused"
	InnerUnknown     Path = "inner call unknown"
	InnerReplayed    Path = "inner call replayed"
	LookedUp         Path = "looked up"
)

// allPaths are the paths that a simulation must take. Otherwise it proves nothing about them.
var allPaths = []Path{
	UnderLease, ClaimedFree, ClaimedOver, ClaimedDead, CommittedOpen, CommittedAlone, CommittedFailed, RecordAlone,
	KnownToken, TokenForgotten, StillRunning, ByRecord, ByOwnRecord, ByCondition, ByBoth, ByConflict, ByWriteConflict, ByThrottling,
	LoserReplayed, LoserBusy, HeldRespected, ConsultedFirst, AloneRefused, AloneUnknown, OpenDropped, OpenUnknown, StepRuns, StepRead, StepsRespected,
	LeaseIndexed, LeaseUnindexed, SignatureExpired, ClaimWithdrawn, PanicUnknown, InnerRefused, InnerUnknown, InnerReplayed, LookedUp,
	AnswerApart, AnswerCompressed, AnswerGone, PartWritten, PartLost,
	OperatorReleased, OperatorSettled, OperatorErased, OperatorForgot, OperatorForgotSteps, OperatorTold, OperatorWaited, OperatorUnknown, LateForOperator,
	met(RequestLost), met(RequestLate), met(ReplyLost), met(Twice), met(Throttled), met(FailBefore), met(FailAfter),
	met(KillBefore), met(KillAfter), met(Stall), met(Unfinished),
}

// met returns the path of a transaction that met a fault.
func met(f Fault) Path { return Path("met: " + string(f)) }

// path counts that a path was taken.
func (b *journal) path(p Path) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.paths[p]++
}
