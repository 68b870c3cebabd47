"""Games of stones in a line against OpenSpiel: m,n,k, tic-tac-toe and Connect Four."""

from referee import Referee, same_random_games

referee = Referee()
same_random_games(referee, "tic-tac-toe", "tic_tac_toe")
same_random_games(referee, "connect-four", "connect_four")
# OpenSpiel's m counts columns and n rows, as ours do.
for m, n, k in [(3, 3, 3), (5, 4, 3), (4, 6, 4), (7, 7, 4), (9, 9, 5)]:
    same_random_games(referee, f"mnk?m={m}&n={n}&k={k}", f"mnk(m={m},n={n},k={k})")
same_random_games(referee, "gomoku-freestyle?size=9", "mnk(m=9,n=9,k=5)")
