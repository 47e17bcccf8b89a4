package store

// What the tests of plans and errors look at from outside.
var (
	TaskQuery     = taskQuery
	SelectWaiting = selectWaiting
	Mapped        = mapped
)
