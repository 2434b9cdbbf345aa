"""A month lived in minutes: conversations are held and jobs are run as of simulated times, and every count is checked.

    script    what happens, by seed alone: nothing is stored
    lives     does what the script says, through the services, as of its times
    dating    sets the times that the database's clock wrote to the simulated ones
    timetable which jobs run when, in a day
    counts    what there is in an account, by name
    equations what each job's figures explain of what changed
    digests   the end state, without ids and without the wall clock
    month     the loop over all of it

A job added to JOBS is run by the timetable at once. As long as `equations` does not know it, all that it changes counts
as unexplained: add what its figures stand for there.
"""
